"""Which kernel modules a driver, a platform and GPUs allow together.

NVIDIA Driver Installation Guide, "Proprietary Kernel Modules Removed" (from 615 on);
NVIDIA/cuda-repo-management#38 (Debian 13's repository has no branch before 590).
"""

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import DriverLock
from gpuboot.hosts import gpu_models, platforms
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN, GB200, H100, P100, T4, WORKER, gpu

M40, V100, A100 = 0x17FD, 0x1DB6, 0x20B2
BEFORE_590 = ("580.178.04", "570.211.01", "535.288.01")


def problems(device: int, os_version: str, os_id: str, **driver: str) -> list[tuple[str, str]]:
    settings: dict[str, Any] = {"driver": driver}
    parsed = parse_settings(settings)
    state = replace(CLEAN, pci=(gpu(device),), os_id=os_id, os_version=os_version)
    return [
        (problem.cause, problem.remedy)
        for problem in evaluate([WORKER], {WORKER.host: state}, parsed, versions.lock(parsed))
    ]


@pytest.mark.parametrize("version", ["615.10.01", "620.44.02", "700.1"])
@pytest.mark.parametrize("device", [H100, T4, A100])
def test_drivers_with_open_modules_alone(device: int, version: str) -> None:
    [(cause, remedy)] = problems(
        device, "24.04", "ubuntu", modules="proprietary", version=version
    )  # fmt: skip
    assert f"driver {version} has open kernel modules alone" in cause
    assert 'driver.modules = "auto"' in remedy
    assert problems(device, "24.04", "ubuntu", version=version) == []
    assert problems(device, "24.04", "ubuntu", modules="open", version=version) == []


@pytest.mark.parametrize("version", ["580.178.04", "595.91.07", "610.43.02"])
def test_drivers_that_have_both(version: str) -> None:
    assert problems(H100, "24.04", "ubuntu", modules="proprietary", version=version) == []


@pytest.mark.parametrize("version", BEFORE_590)
@pytest.mark.parametrize("modules", ["auto", "proprietary", "open"])
def test_debian_13_has_no_driver_before_590(version: str, modules: str) -> None:
    [(cause, remedy)] = problems(A100, "13", "debian", modules=modules, version=version)
    assert f"no driver before branch 590, and {version} is requested" in cause
    assert "leave driver.version out" in remedy


@pytest.mark.parametrize("version", BEFORE_590)
@pytest.mark.parametrize(
    ("os_id", "os_version"), [("debian", "12"), ("ubuntu", "22.04"), ("ubuntu", "24.04")]
)
def test_other_platforms_have_older_branches(os_id: str, os_version: str, version: str) -> None:
    assert problems(A100, os_version, os_id, version=version) == []


@pytest.mark.parametrize("device", [M40, P100, V100])
@pytest.mark.parametrize("version", ["595.91.07", "580.178.04"])
def test_old_gpus_on_debian_13_are_told_of_other_systems(device: int, version: str) -> None:
    name = gpu_models.generation(device).name
    [(cause, remedy)] = problems(device, "13", "debian", version=version)
    assert f"{name} needs driver branch 580 or older" in cause
    assert "Debian 12" in remedy
    assert "driver.version" not in remedy, "that version is not there either"
    [(cause, remedy)] = problems(device, "12", "debian", version="620.44.02")
    assert 'driver.version = "580.178.04"' in remedy
    assert problems(device, "12", "debian", version="580.178.04") == []


def test_blackwell_needs_open_modules_whatever_the_branch() -> None:
    for version in ("580.178.04", "620.44.02"):
        [(cause, _)] = problems(GB200, "24.04", "ubuntu", modules="proprietary", version=version)
        assert "needs the open kernel modules" in cause
        assert problems(GB200, "24.04", "ubuntu", version=version) == []


def test_the_repositories_that_lack_earlier_drivers() -> None:
    late = [item.name for item in platforms.PLATFORMS if item.oldest_driver]
    assert late == ["Ubuntu 26.04", "Debian 13"]
    lock = DriverLock(version="580.178.04", last_legacy="580.178.04")
    assert gpu_models.flavour([P100, A100], "auto", lock) == "proprietary"
