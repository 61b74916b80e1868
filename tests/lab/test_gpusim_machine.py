"""The simulated hardware of a machine, and the driver's packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.build.debs import SIMULATED, build_deb
from lab.gpusim import builds
from lab.gpusim.packages import PINNED, cuda_keyring, driver_debs
from lab.gpusim.pci_devices import gpu_uuid, install_pci_devices

PCI = "var/lib/gpu-sim/pci"


def nvidia_devices(root: Path) -> list[str]:
    return sorted(
        folder.name
        for folder in (root / PCI).iterdir()
        if (folder / "vendor").read_text() == "0x10de\n"
    )


def test_gpus_are_on_the_bus_where_the_libraries_say(tmp_path: Path) -> None:
    install_pci_devices(tmp_path, 3, 0xABCD0001)
    assert nvidia_devices(tmp_path) == ["0000:10:00.0", "0000:1c:00.0", "0000:28:00.0"]
    gpu = tmp_path / PCI / "0000:1c:00.0"
    assert (gpu / "class").read_text() == "0x030200\n"
    assert (gpu / "device").read_text() == "0x2330\n"
    assert (gpu / "config").read_bytes()[:4] == bytes.fromhex("de103023")


def test_a_machine_without_gpus_has_other_devices_only(tmp_path: Path) -> None:
    install_pci_devices(tmp_path, 0, 1)
    assert nvidia_devices(tmp_path) == []
    assert (tmp_path / PCI / "0000:03:00.0/class").read_text() == "0x030000\n"


def test_pci_devices_are_shown_at_boot(tmp_path: Path) -> None:
    install_pci_devices(tmp_path, 1, 1)
    symlink = tmp_path / "etc/systemd/system/sysinit.target.wants/gpu-sim-pci.service"
    assert symlink.readlink() == Path("/etc/systemd/system/gpu-sim-pci.service")
    for program in ("usr/bin/gpu-sim", "usr/lib/gpu-sim/power-on"):
        assert os.access(tmp_path / program, os.X_OK)


@pytest.mark.parametrize(("count", "model"), [(17, "NVIDIA H200"), (1, "NVIDIA Abacus")])
def test_unknown_hardware_is_refused(tmp_path: Path, count: int, model: str) -> None:
    with pytest.raises(ValueError, match=r"17|Abacus"):
        install_pci_devices(tmp_path, count, 1, model)


def test_the_libraries_read_the_hardware_file(tmp_path: Path) -> None:
    install_pci_devices(tmp_path, 2, 0xABCD0001, "NVIDIA H200")
    bins = builds.build(tmp_path / "bins", ("595.91.07",))
    (tmp_path / "libnvidia-ml.so.1").symlink_to(bins["libnvidia-ml.so.595.91.07"])
    for node in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / node).touch()
    conf = tmp_path / "gsp_sim.bin"
    hardware = (tmp_path / "var/lib/gpu-sim/hardware.conf").read_text()
    conf.write_text(f"{hardware}driver_version = 595.91.07\n[faults]\n")
    result = subprocess.run(
        [
            bins["nvidia-smi.595.91.07"],
            "--query-gpu=name,uuid,memory.total",
            "--format=csv,noheader",
        ],
        env={
            "SIM_GPU_CONF": str(conf),
            "SIM_GPU_DEV": str(tmp_path),
            "LD_LIBRARY_PATH": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == [
        f"NVIDIA H200, {gpu_uuid(0xABCD0001, i)}, 143771 MiB" for i in range(2)
    ]


@pytest.fixture
def placeholder_bins(tmp_path: Path) -> dict[str, Path]:
    """Outputs of the build by name; the packages only place them."""
    bins = {name: tmp_path / name for name in builds.commands(tmp_path)}
    for path in bins.values():
        path.write_bytes(b"\x7fELF")
    return bins


def test_every_package_of_a_version_is_pinned_and_says_simulated(
    placeholder_bins: dict[str, Path],
) -> None:
    debs = driver_debs("595.112.07", placeholder_bins)
    assert all(SIMULATED in deb.description for deb in debs)
    versioned = {deb.name for deb in debs if "pinning" not in deb.name}
    assert versioned == set(PINNED)
    assert {deb.version for deb in debs if deb.name in versioned} == {"595.112.07-1"}


@pytest.mark.parametrize(
    ("package", "pattern"),
    [
        ("nvidia-driver-pinning-595", "595.*"),
        ("nvidia-driver-pinning-595.112.07", "595.112.07-*"),
    ],
)
def test_pinning_packages_hold_a_branch_or_a_version(
    placeholder_bins: dict[str, Path], package: str, pattern: str
) -> None:
    debs = {deb.name: deb for deb in driver_debs("595.112.07", placeholder_bins)}
    text = debs[package].files["/etc/apt/preferences.d/nvidia-driver-pinning"]
    assert isinstance(text, str)
    assert f"Pin: version {pattern}\nPin-Priority: 1001\n" in text


def test_packages_can_be_written(placeholder_bins: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for deb in driver_debs("595.91.07", placeholder_bins):
        path = build_deb(deb, out)
        result = subprocess.run(
            ["dpkg-deb", "-c", path], check=True, capture_output=True, text=True
        )
        if deb.name == "libnvidia-compute":
            assert "libnvidia-ml.so.1 -> libnvidia-ml.so.595.91.07" in result.stdout


def test_keyring_package_names_the_repository_it_was_made_for(tmp_path: Path) -> None:
    key = subprocess.run(
        ["gpg", "--batch", "--enarmor"], input=b"not a key", capture_output=True, check=True
    ).stdout
    deb = cuda_keyring(key, "https://mirror.lab/apt/cuda/debian12/x86_64", "debian12")
    assert deb.filename == "cuda-keyring_1.1-1_all.deb"
    assert deb.files["/etc/apt/sources.list.d/cuda-debian12-x86_64.list"] == (
        "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] "
        "https://mirror.lab/apt/cuda/debian12/x86_64/ /\n"
    )
    assert deb.files["/usr/share/keyrings/cuda-archive-keyring.gpg"] == b"not a key"
