"""Machines with a vendor's own collection of driver and tools.

/etc/dgx-release as people have posted it of a DGX Spark, a DGX A100 and a DGX Station.
"""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node.fact import SCRIPT
from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.node_state import Unit, parse
from gpuboot.preflight import driver_problems
from tests.unit.test_node_state import ANSWER
from tests.unit.test_preflight import CLEAN, WORKER

LOCKED = versions.lock(parse_settings({})).driver.version

SERIAL = "1234567890123"
SPARK = f"""\
DGX_NAME="DGX Spark"
DGX_PRETTY_NAME="NVIDIA DGX Spark"
DGX_SWBUILD_DATE="2025-09-10-13-50-03"
DGX_SWBUILD_VERSION="7.2.3"
DGX_COMMIT_ID="833b4a7"
DGX_PLATFORM="DGX Server for KVM"
DGX_SERIAL_NUMBER="{SERIAL}"

DGX_OTA_VERSION="7.4.0"
DGX_OTA_DATE="Mon Feb  2 19:34:58 CET 2026"

DGX_OTA_VERSION="7.5.0"
"""
STATION = """\
DGX_NAME="DGX GB300WS"
DGX_PRETTY_NAME="NVIDIA DGX GB300WS"
DGX_SWBUILD_VERSION="7.6.0"
"""


def read(root: Path, release: str = "", lambda_stack: str = "") -> tuple[str, ...]:
    """What the fact's function tells of a machine."""
    (root / "etc").mkdir()
    if release:
        (root / "etc/dgx-release").write_text(release)
    program = root / "bin/dpkg-query"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '%s' '{lambda_stack}'\n")
    program.chmod(0o755)
    function = SCRIPT[SCRIPT.index("vendor_stack() {") : SCRIPT.index("#!/bin/sh")]
    script = re.sub(r"(?<![\w/])/etc/", f"{root}/etc/", function)
    result = subprocess.run(
        ["sh", "-uc", f"{script}vendor_stack"],
        env={"PATH": f"{root}/bin:{os.environ['PATH']}", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert SERIAL not in result.stdout
    return parse([*ANSWER[:-1], *result.stdout.splitlines(), ANSWER[-1]]).vendor_stacks


@pytest.mark.parametrize(
    ("release", "name"),
    [
        (SPARK, "DGX OS 7.5.0 (NVIDIA DGX Spark)"),
        (STATION, "DGX OS 7.6.0 (NVIDIA DGX GB300WS)"),
        ("DGX_PRETTY_NAME=NVIDIA DGX Server\nDGX_OTA_VERSION=22.02-1\n",
         "DGX OS 22.02-1 (NVIDIA DGX Server)"),
    ],
)  # fmt: skip
def test_dgx_os(tmp_path: Path, release: str, name: str) -> None:
    assert read(tmp_path, release) == (name,)


def test_lambda_stack(tmp_path: Path) -> None:
    installed = "installed lambda-stack-cuda 0.1.13~22.04.3\nconfig-files lambda-stack 1\n"
    stack = read(tmp_path, lambda_stack=installed)
    assert stack == ("Lambda Stack (lambda-stack-cuda 0.1.13~22.04.3)",)


def test_plain_ubuntu(tmp_path: Path) -> None:
    assert read(tmp_path) == ()


def lines(settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    parsed = parse_settings(settings or {})
    state = replace(CLEAN, **({"vendor_stacks": ("DGX OS 7.5.0 (NVIDIA DGX H100)",)} | changes))
    return driver_problems.vendor_warnings(
        [WORKER], {WORKER.host: state}, parsed, versions.lock(parsed)
    )


def test_a_vendor_s_driver_that_the_run_replaces() -> None:
    [line] = lines(driver_loaded="570.172.08")
    assert line.startswith("[gpu1] DGX OS 7.5.0 (NVIDIA DGX H100) brought its own driver")
    assert "driver.enabled = False" in line
    assert lines({"driver": {"enabled": False}}) == []
    assert lines(packages={"nvidia-open": f"{LOCKED}-1"}) == [], "it was replaced before"
    assert lines(vendor_stacks=()) == []
    [line] = lines(vendor_stacks=("Lambda Stack (lambda-stack-cuda 0.1.13)",))
    assert "Lambda Stack" in line


def test_a_mig_manager_of_the_host_s_own() -> None:
    packages = {"nvidia-open": f"{LOCKED}-1"}
    enabled = {"nvidia-mig-manager": Unit("inactive", "enabled")}
    [line] = lines(packages=packages, units=enabled)
    assert "systemctl disable --now nvidia-mig-manager" in line
    disabled = {"nvidia-mig-manager": Unit("inactive", "disabled")}
    assert lines(packages=packages, units=disabled) == []
    assert lines(packages=packages, units=enabled, vendor_stacks=()) == []
