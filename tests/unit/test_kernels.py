"""Kernel headers: which packages a machine needs, as dpkg and apt tell, so that DKMS can build.

Names and dependencies: Debian 12's archive (apt-cache show); Ubuntu's kernel metapackages as
`dpkg -l` of 24.04 machines shows them: generic-hwe-24.04 (kevoreilly/CAPEv2, installer notes) and
nvidia-hwe-24.04 (DGX Spark update notes); those of the clouds follow the same rule.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node.fact import SCRIPT
from deploys.phases import drivers
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import kernels, platforms
from gpuboot.hosts.node_state import parse
from tests.unit.test_node_state import ANSWER
from tests.unit.test_runtime import context

STATE = parse(ANSWER)
UBUNTU_2404 = platforms.of(STATE)
KERNEL = os.uname().release
# package, Depends
UBUNTU = (
    ("generic", "linux-image-6.8.0-90-generic, linux-modules-extra-6.8.0-90-generic"),
    ("virtual", "linux-image-6.8.0-90-generic"),
    ("generic-hwe-24.04", "linux-image-7.0.0-30-generic, linux-firmware"),
    ("aws", "linux-image-6.8.0-1044-aws"),
    ("aws-lts-24.04", "linux-image-6.8.0-1044-aws"),
    ("azure", "linux-image-6.8.0-1044-azure, linux-modules-extra-6.8.0-1044-azure"),
    ("gcp", "linux-image-6.8.0-1044-gcp"),
    ("oracle", "linux-image-6.8.0-1044-oracle"),
    ("nvidia", "linux-image-6.8.0-1044-nvidia"),
    ("nvidia-hwe-24.04", "linux-image-6.17.0-1014-nvidia"),
    ("nvidia-64k", "linux-image-6.8.0-1044-nvidia-64k"),
)
DEBIAN = (
    ("amd64", "linux-image-6.1.0-56-amd64 (= 6.1.192-2)"),
    ("cloud-amd64", "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)"),
    ("6.12-amd64", "linux-image-6.12.117+deb12-amd64 (= 6.12.117-1~deb12u1)"),
)
NO_METAPACKAGES = (
    ("6.1.0-56-amd64", "kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool"),
    ("unsigned-6.8.0-90-generic", "kmod, linux-base, linux-modules-6.8.0-90-generic"),
    ("amd64-dbg", "linux-image-6.1.0-56-amd64-dbg (= 6.1.192-2)"),
    ("extra-virtual", "linux-image-generic"),  # its linux-image-generic is looked at for itself
)


def header_lines(
    tmp_path: Path,
    installed: tuple[tuple[str, str], ...],
    available: tuple[str, ...],
    present: tuple[str, ...] = (),
) -> list[str]:
    """What the fact's own script says of headers, beside the dpkg and apt of some machine."""
    table = "".join(f"installed linux-image-{name} {needs}\n" for name, needs in installed)
    programs = {
        "dpkg-query": f"""case "$*" in
            *'linux-image-*') printf '%s' '{table}' ;;
            *) for name in {" ".join(present) or "''"}; do
              case "$*" in *" $name") printf installed ;; esac
            done ;; esac""",
        "apt-cache": f"""for name in {" ".join(available) or "''"}; do
            test "$2" != "$name" || echo "Package: $name"; done""",
        "ls": ":",  # apt has read an index
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    head, _, _ = SCRIPT.partition("# --- the kernel: can it do")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", "-c", head], env=environment, capture_output=True, text=True, check=True
    )
    return [line for line in result.stdout.splitlines() if "headers" in line.split("\t")[0]]


@pytest.mark.parametrize(("name", "needs"), [*UBUNTU, *DEBIAN])
def test_every_kernel_metapackage_has_its_headers(tmp_path: Path, name: str, needs: str) -> None:
    lines = header_lines(tmp_path, ((name, needs),), (f"linux-headers-{name}",))
    assert f"kernel_headers\tlinux-headers-{name} available" in lines
    state = parse([*(line for line in ANSWER if not line.startswith("headers")), *lines])
    assert f"linux-headers-{name}" in kernels.headers(UBUNTU_2404, state)


def test_packages_that_bring_no_new_kernel_need_none(tmp_path: Path) -> None:
    assert not [
        line for line in header_lines(tmp_path, NO_METAPACKAGES, ()) if "kernel_headers" in line
    ]


def test_headers_that_are_installed_and_those_that_apt_lacks(tmp_path: Path) -> None:
    lines = header_lines(tmp_path, (*DEBIAN[:1], ("mine", "linux-image-6.9-mine")), (), (
        "linux-headers-amd64",))  # fmt: skip
    assert "kernel_headers\tlinux-headers-amd64 installed" in lines
    assert "kernel_headers\tlinux-headers-mine missing" in lines


@pytest.mark.parametrize(
    ("present", "available", "status"),
    [
        ((f"linux-headers-{KERNEL}",), (), "installed"),
        ((), (f"linux-headers-{KERNEL}",), "available"),
        ((), (), "missing"),
    ],
)
def test_the_running_kernel(
    tmp_path: Path, present: tuple[str, ...], available: tuple[str, ...], status: str
) -> None:
    if Path(f"/lib/modules/{KERNEL}/build/Makefile").exists():
        status = "installed"
    assert f"headers\t{status}" in header_lines(tmp_path, (), available, present)


HEADERS = "linux-headers-6.8.0-90-generic"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"headers": "available"}, [HEADERS]),
        ({"headers": "unknown"}, [HEADERS]),
        # put there by hand: apt may not have this package at all
        ({"headers": "installed"}, []),
        ({"headers": "installed", "packages": {HEADERS: "1"}}, [HEADERS]),
        (
            {
                "kernel_headers": {
                    "linux-headers-generic": "installed",
                    "linux-headers-aws": "unknown",
                }
            },
            [HEADERS, "linux-headers-aws", "linux-headers-generic"],
        ),
        ({"headers": "installed", "kernel_headers": {"linux-headers-mine": "missing"}}, []),
    ],
)
def test_packages_to_install(changes: dict[str, Any], expected: list[str]) -> None:
    assert kernels.headers(UBUNTU_2404, replace(STATE, **changes)) == expected


def test_a_kernel_that_will_come_without_headers_is_told() -> None:
    node = Node("gpu1", "gpu1", "10.0.0.5", "worker", 8, False)
    states = {"gpu1": replace(STATE, kernel_headers={"linux-headers-mine": "missing"})}
    (line,) = kernels.warnings([node], states, parse_settings({}))
    assert "[gpu1] apt has no linux-headers-mine" in line
    assert "remedy" in line
    off = parse_settings({"driver": {"enabled": False}})
    assert kernels.warnings([node], states, off) == []
    assert kernels.warnings([replace(node, gpus=0)], states, parse_settings({})) == []
    assert kernels.warnings([node], {}, parse_settings({})) == []
    good = {"gpu1": replace(STATE, kernel_headers={"linux-headers-generic": "available"})}
    assert kernels.warnings([node], good, parse_settings({})) == []


def test_the_driver_is_installed_with_them() -> None:
    packages = drivers.companion_packages(
        context(kernel_headers={"linux-headers-generic": "available"})
    )
    assert (
        packages.items()
        >= {HEADERS: "", "linux-headers-generic": "", "nvidia-persistenced": ""}.items()
    )
