"""Kernels whose headers have other names, or no package: Proxmox VE's, one's own, and flavours.

Names and dependencies: debian/control.in of Proxmox's kernels (proxmox/pve-kernel), `dpkg -l` of a
machine of Proxmox VE 8, and the flavours of Ubuntu, Debian and Raspberry Pi.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deploys.parts.node.fact import SCRIPT
from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import kernels, platforms
from gpuboot.hosts.node_state import NodeState, parse
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER

UBUNTU_2404 = platforms.of(parse(ANSWER))
PVE_8, PVE_7 = "6.8.12-4-pve", "5.15.158-2-pve"


def _programs(
    kernel: str, packages: dict[str, str], available: tuple[str, ...], index: bool
) -> dict[str, str]:
    table = "".join(f"installed {name} {needs}\n" for name, needs in packages.items())
    return {
        "uname": f"echo gpu1 {kernel} x86_64",
        "dpkg-query": f"""case "$*" in
            *'linux-image-*') printf '%s' '{table}' ;;
            *) for name in {" ".join(packages) or "''"}; do
              case "$*" in *" $name") printf installed ;; esac
            done ;; esac""",
        "apt-cache": f"""for name in {" ".join(available) or "''"}; do
            test "$2" != "$name" || echo "Package: $name"; done""",
        "ls": ":" if index else "exit 2",
    }


def read(
    tmp_path: Path,
    kernel: str,
    installed: dict[str, str] | None = None,
    available: tuple[str, ...] = (),
    index: bool = True,
) -> NodeState:
    """What the fact's own script says of headers.

    + installed: packages -> what they depend on
    + available: what apt knows
    + index: apt has read one
    """
    for name, text in _programs(kernel, installed or {}, available, index).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    head, _, _ = SCRIPT.partition("# --- the kernel: can it do")
    head = head.replace("/lib/modules/", f"{tmp_path}/modules/")
    result = subprocess.run(
        ["sh", "-c", head],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    other_lines = [line for line in ANSWER if not line.startswith(("headers", "kernel\t"))]
    header_lines = [line for line in result.stdout.splitlines() if "headers" in line.split("\t")[0]]
    return parse([*other_lines[:-1], f"kernel\t{kernel}", *header_lines, other_lines[-1]])


def causes(state: NodeState) -> list[tuple[str, str]]:
    of_headers = replace(
        CLEAN, kernel=state.kernel, headers=state.headers, headers_package=state.headers_package
    )
    parsed = parse_settings({})
    reported = evaluate([WORKER], {WORKER.host: of_headers}, parsed, versions.lock(parsed))
    return [(problem.cause, problem.remedy) for problem in reported]


@pytest.mark.parametrize(
    ("kernel", "package"),
    [
        (PVE_8, f"proxmox-headers-{PVE_8}"),
        ("6.14.11-4-pve", "proxmox-headers-6.14.11-4-pve"),
        (PVE_7, f"pve-headers-{PVE_7}"),
        ("6.8.0-1044-aws", "linux-headers-6.8.0-1044-aws"),
        ("6.8.0-90-lowlatency", "linux-headers-6.8.0-90-lowlatency"),
        ("6.8.1-1015-realtime", "linux-headers-6.8.1-1015-realtime"),
        ("6.8.0-1044-nvidia-64k", "linux-headers-6.8.0-1044-nvidia-64k"),
        ("6.8.0-1031-raspi", "linux-headers-6.8.0-1031-raspi"),
        ("6.1.0-56-cloud-amd64", "linux-headers-6.1.0-56-cloud-amd64"),
        ("6.1.0-56-rt-amd64", "linux-headers-6.1.0-56-rt-amd64"),
    ],
)
def test_headers_that_apt_has(tmp_path: Path, kernel: str, package: str) -> None:
    state = read(tmp_path, kernel, available=(package,))
    assert (state.headers, state.headers_package) == ("available", package)
    assert kernels.headers(UBUNTU_2404, state) == [package]
    assert causes(state) == []


def test_headers_of_proxmox_that_are_installed(tmp_path: Path) -> None:
    state = read(tmp_path, PVE_8, {f"proxmox-headers-{PVE_8}": ""})
    assert state.headers == "installed"
    assert causes(state) == []


def test_before_apt_has_an_index_the_newer_name_is_asked_for(tmp_path: Path) -> None:
    state = read(tmp_path, PVE_8, index=False)
    assert (state.headers, state.headers_package) == ("unknown", f"proxmox-headers-{PVE_8}")
    assert kernels.headers(UBUNTU_2404, state) == [f"proxmox-headers-{PVE_8}"]


@pytest.mark.parametrize("kernel", [PVE_8, "6.12.9-site1", "6.9.0-060900-generic"])
def test_a_kernel_of_any_kind_with_its_build_tree(tmp_path: Path, kernel: str) -> None:
    build = tmp_path / "modules" / kernel / "build"
    build.mkdir(parents=True)
    (build / "Makefile").touch()
    state = read(tmp_path, kernel)
    assert state.headers == "installed"
    assert kernels.headers(UBUNTU_2404, state) == [], "nothing is asked of apt"
    assert causes(state) == []


def test_proxmox_s_repository_is_named_where_it_is_missing(tmp_path: Path) -> None:
    [(cause, remedy)] = causes(read(tmp_path, PVE_8))
    assert f"no kernel headers for the running kernel {PVE_8}" in cause
    assert f"install proxmox-headers-{PVE_8} (Proxmox's repository pve-no-subscription" in remedy


@pytest.mark.parametrize("kernel", ["6.12.9-site1", "6.9.0-060900-generic", "6.6.58-xanmod1"])
def test_one_s_own_kernel_without_headers(tmp_path: Path, kernel: str) -> None:
    [(_, remedy)] = causes(read(tmp_path, kernel))
    assert f"install linux-headers-{kernel}, which whoever built this kernel has" in remedy


def test_the_next_kernels_of_proxmox_come_with_headers(tmp_path: Path) -> None:
    installed = {
        "proxmox-default-kernel": "proxmox-kernel-6.8",
        "proxmox-kernel-6.8": f"proxmox-kernel-{PVE_8}-signed | proxmox-kernel-{PVE_8}",
        f"proxmox-kernel-{PVE_8}-signed": "busybox, initramfs-tools | linux-initramfs-tool",
        "proxmox-kernel-helper": "proxmox-kernel-helper-base",
        "pve-kernel-5.15": f"pve-firmware, pve-kernel-{PVE_7}",
    }
    available = ("proxmox-default-headers", "proxmox-headers-6.8", f"proxmox-headers-{PVE_8}")
    state = read(tmp_path, PVE_8, installed, available)
    assert state.kernel_headers == {
        "proxmox-default-headers": "available",
        "proxmox-headers-6.8": "available",
        "pve-headers-5.15": "missing",
    }
    assert kernels.headers(UBUNTU_2404, state) == [
        f"proxmox-headers-{PVE_8}",
        "proxmox-default-headers",
        "proxmox-headers-6.8",
    ]
