"""Which machines manage an NVLink fabric, and what they need for it.

PCI ids: pci.ids (GB100, GB110) and lspci of p5, p6 and HGX B200/B300 hosts; what NVLink 5 needs:
NVIDIA/gpu-operator#2781, NVIDIA/gpu-driver-container (install.sh, nvidia-driver),
siderolabs/extensions#717 and #893, spectrocloud/CanvOS#700.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node.fact import SCRIPT
from deploys.phases import drivers
from deploys.phases import node_software as parts
from deploys.run.context import Context
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.hosts import fabric
from gpuboot.hosts.node_state import NodeState, parse
from gpuboot.hosts.pci import PciDevice
from gpuboot.preflight import preflight_checks as preflight
from gpuboot.verify.checks import operating_system
from gpuboot.verify.gpu_state import parse as parse_gpus
from tests.unit import evidence
from tests.unit.test_gpu_state import GOOD
from tests.unit.test_node_state import ANSWER
from tests.unit.test_runtime import NODE, context

STATE = parse(ANSWER)
BRIDGES = ("0000:0a:00.0", "0000:0b:00.0", "0000:0c:00.0", "0000:0d:00.0")


def machine(
    device: int, count: int = 8, switches: int = 0, bridges: tuple[str, ...] = ()
) -> NodeState:
    gpus = [PciDevice(f"0000:{10 + n}:00.0", device, "0x030200") for n in range(count)]
    devices = [PciDevice(f"0000:0{n}:00.0", 0x22A3, "0x068000") for n in range(switches)]
    return replace(STATE, pci=(*devices, *gpus), nvlink_bridges=bridges)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (machine(0x20B0, switches=6), "nvswitch"),  # HGX A100
        (machine(0x2330, switches=4), "nvswitch"),  # HGX H100
        (machine(0x2335, switches=4), "nvswitch"),  # HGX H200
        (machine(0x2901, bridges=BRIDGES), "nvlink5"),  # HGX B200
        (machine(0x2901), "nvlink5"),  # the same, whose VPD cannot be read
        (machine(0x3182, bridges=BRIDGES), "nvlink5"),  # HGX B300
        (machine(0x2901, count=1), ""),  # one B200 handed to a virtual machine
        (machine(0x2941, count=4), ""),  # GB200 NVL72: the switch trays have the fabric manager
        (machine(0x31C2, count=4, bridges=BRIDGES), ""),  # GB300 NVL72
        (machine(0x2331, count=4), ""),  # H100 PCIe
        (machine(0x1EB8, count=1), ""),  # T4
        (machine(0x2E12, count=1), ""),  # GB10
    ],
)
def test_what_a_machine_manages(state: NodeState, expected: str) -> None:
    assert fabric.detected(state) == expected
    assert fabric.managed(state, "auto") == expected
    assert fabric.managed(state, "never") == ""


def test_the_site_may_know_better() -> None:
    assert fabric.managed(machine(0x2901, count=1), "always") == "nvlink5"
    assert fabric.managed(machine(0x2331, count=2), "always") == "nvswitch"


def b200(**changes: Any) -> Context:
    state = machine(0x2901, bridges=BRIDGES)
    return context(pci=state.pci, nvlink_bridges=BRIDGES, **changes)


def test_an_hgx_b200_gets_subnet_manager_and_fabric_manager() -> None:
    assert (
        drivers.companion_packages(b200()).items() >= {"nvlsm": "", "infiniband-diags": ""}.items()
    )
    version = b200().lock.driver.version
    assert parts.driver(b200())["nvidia-fabricmanager"] == f"{version}-*"
    assert "nvidia-fabricmanager.service" in drivers.services(b200())
    assert drivers.NVLINK5.splitlines()[1:] == ["mlx5_ib", "ib_umad"]
    assert "nvlsm" not in drivers.companion_packages(context())


def causes(state: NodeState) -> list[str]:
    settings = parse_settings({})
    node = replace(NODE, gpus=len(state.gpus))
    problems = preflight.evaluate([node], {NODE.host: state}, settings, lock(settings))
    return [str(item) for item in problems if "NVLink 5" in item.cause]


def test_a_kernel_without_infiniband_is_told_before_anything_is_changed() -> None:
    (problem,) = causes(machine(0x2901, bridges=BRIDGES))
    assert "lacks mlx5_ib, ib_umad" in problem
    assert "install linux-modules-extra-6.8.0-90-generic" in problem
    able = frozenset({*STATE.kernel_features, "mlx5_ib", "ib_umad"})
    assert causes(replace(machine(0x2901, bridges=BRIDGES), kernel_features=able)) == []
    assert causes(machine(0x2330, switches=4)) == []


def test_the_fact_finds_bridges_by_their_vpd(tmp_path: Path) -> None:
    for name, vendor, vpd in (
        ("0000:0a:00.0", "0x15b3", b"\x82\x00NVLink\x90V0\x00SW_MNG\x00"),
        ("0000:0b:00.0", "0x15b3", b"\x82\x00ConnectX-7 NDR\x90"),
        ("0000:10:00.0", "0x10de", b""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "vpd").write_bytes(vpd)
    start = SCRIPT.index("# an NVSwitch of NVLink 5 has no PCI address")
    part = SCRIPT[start : SCRIPT.index("# --- the NVIDIA driver: loaded")]
    head = 'put() { printf \'%s\\t%s\\n\' "$1" "$2"; }\n'
    script = head + part.replace("/sys/bus/pci/devices", str(tmp_path))
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "nvlink_bridge\t0000:0a:00.0\n"
    assert parse([*ANSWER, result.stdout.strip()]).nvlink_bridges == ("0000:0a:00.0",)


@pytest.mark.parametrize(
    ("state_text", "outside"),
    [
        # captures of nvidia-smi: H100, H200 (590.48.01), RTX 2080 (595.71.05); B200 of the issues
        ("Completed, Success", ""),
        ("Completed, N/A", ""),
        ("[N/A], [N/A]", ""),
        ("N/A, N/A", ""),
        ("Not Supported, Not Supported", ""),
        ("In Progress, N/A", "In Progress"),
        ("Not Started, N/A", "Not Started"),
        ("Completed, Insufficient Resources", "Completed, status Insufficient Resources"),
    ],
)
def test_a_gpu_outside_its_fabric_fails_with_the_remedy_of_802(
    state_text: str, outside: str
) -> None:
    uuid = evidence.uuid("gpu1", 0)
    state = parse_gpus([f"fabric\t{uuid}, {state_text}", *GOOD])
    assert [gpu.fabric_error for gpu in state.gpus] == [outside, ""]
    findings = operating_system.nvidia_smi(replace(evidence.host(), gpus=state.gpus))
    failed = [item for item in findings if item.status == "fail"]
    assert bool(failed) is bool(outside)
    if outside:
        assert f"not in its NVLink fabric ({outside}): CUDA answers 802" in failed[0].detail
        assert "nvidia-fabricmanager" in failed[0].remedy
        assert "nvlsm" in failed[0].remedy
        assert failed[0].gpu_uuid == uuid
