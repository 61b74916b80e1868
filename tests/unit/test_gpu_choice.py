"""Which GPUs of a machine are the cluster's, and what becomes of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config import versions
from gpuboot.config.inventory import Entry, Node, parse_entry
from gpuboot.config.problems import Problem
from gpuboot.config.settings import parse_settings
from gpuboot.hosts import gpu_choice
from gpuboot.hosts.gpu_choice import choose, options
from gpuboot.hosts.node_state import NodeState, parse
from gpuboot.hosts.pci import PciDevice
from gpuboot.preflight.preflight_checks import evaluate
from tests.unit.test_preflight import CLEAN

VGA, CARD = "0x030000", "0x030200"
H100 = tuple(PciDevice(f"0000:{n}:00.0", 0x2330, CARD, "nvidia") for n in (17, 18))
GT_710 = PciDevice("0000:65:00.0", 0x128B, VGA)  # Kepler, for the console
P400 = PciDevice("0000:65:00.0", 0x1CB3, VGA)  # Pascal, likewise
T400 = PciDevice("0000:65:00.0", 0x1FF2, VGA, "nvidia")  # Turing: today's drivers support it
A100_VF = tuple(
    PciDevice(f"0000:c1:00.{n}", 0x20B5, CARD, "nvidia", virtual=True) for n in range(4, 7)
)
PASSED_ON = PciDevice("0000:41:00.0", 0x20B5, CARD, "vfio-pci")
GRACE_PASSED_ON = PciDevice("0000:41:00.0", 0x2342, CARD, "nvgrace-gpu-vfio-pci")
SETTINGS = parse_settings({})
LOCK = versions.lock(SETTINGS)
R580 = LOCK.driver.model_copy(update={"version": LOCK.driver.last_legacy})


def evaluated(node: Node, state: NodeState) -> list[Problem]:
    return evaluate([node], {node.host: state}, SETTINGS, LOCK)


def chosen_state(
    *pci: PciDevice, driver: Any = LOCK.driver, names: tuple[str, ...] = ()
) -> NodeState:
    node = Node("gpu1", "gpu1", "10.0.0.5", "worker", len(pci), False, cluster_gpus=names)
    return choose(node, replace(CLEAN, pci=pci), driver)


@pytest.mark.parametrize(
    ("ignored_device", "driver", "reason"),
    [
        (GT_710, LOCK.driver, "supports no older than Maxwell"),
        (GT_710, R580, "supports no older than Maxwell"),
        (P400, LOCK.driver, "supports no Pascal"),
        (A100_VF[0], LOCK.driver, "a virtual function (SR-IOV)"),
        (PASSED_ON, LOCK.driver, "kept by the driver vfio-pci"),
        (GRACE_PASSED_ON, None, "kept by the driver nvgrace-gpu-vfio-pci"),
        (replace(PASSED_ON, driver="pci-stub"), None, "kept by the driver pci-stub"),
    ],
)
def test_what_is_not_for_pods_is_named_and_left_alone(
    ignored_device: PciDevice, driver: Any, reason: str
) -> None:
    result = chosen_state(*H100, ignored_device, driver=driver)
    assert result.gpus == H100
    assert len(result.all_gpus) == 3
    assert [
        reason in line and ignored_device.slot in line for line in gpu_choice.ignored(result)
    ] == [True]


def test_an_old_card_counts_where_the_driver_still_supports_it() -> None:
    assert chosen_state(*H100, P400, driver=R580).gpus == (*H100, P400)


def test_old_cards_alone_are_the_cluster_s_so_that_the_driver_is_refused() -> None:
    assert chosen_state(P400).gpus == (P400,)


@pytest.mark.parametrize(
    "names",
    [
        ("H100",),
        ("h100 sxm5",),
        ("10de:2330",),
        ("0000:17:00.0", "00000000:18:00.0"),
        ("17:00.0", "18:00.0"),
        ("GPU-a", "GPU-b"),
    ],
)
def test_the_host_s_data_names_the_cluster_s_gpus(names: tuple[str, ...]) -> None:
    named_gpus = tuple(replace(gpu, uuid=f"GPU-{n}") for gpu, n in zip(H100, "ab", strict=True))
    result = chosen_state(*named_gpus, replace(T400, uuid="GPU-c"), names=names)
    assert [gpu.slot for gpu in result.gpus] == [gpu.slot for gpu in H100]
    assert "not named in cluster_gpus" in gpu_choice.ignored(result)[0]


def test_an_address_is_that_of_its_domain() -> None:
    far = replace(H100[0], slot="0001:17:00.0")
    assert chosen_state(far, H100[0], names=("17:00.0",)).gpus == (H100[0],)
    assert chosen_state(far, H100[0], names=("00000001:17:00.0",)).gpus == (far,)


def test_uuids_are_compared_once_a_driver_knows_them() -> None:
    result = chosen_state(*H100, T400, names=("GPU-a", "GPU-b"))
    node = Node("gpu1", "gpu1", "10.0.0.5", "worker", 2, False, cluster_gpus=("GPU-a", "GPU-b"))
    assert result.ignored_gpus == {}
    assert gpu_choice.unmatched(node, result) == []
    assert not evaluated(node, result)
    [line] = gpu_choice.warnings([node], {"gpu1": result})
    assert "known once the driver is loaded" in line


@pytest.mark.parametrize(
    ("pci", "gpus", "names", "parts"),
    [
        # the remedy never counts what is not for pods
        ((*H100, GT_710, *A100_VF), 6, (), ["promises 6", "shows 2", "left alone"]),
        ((*H100, T400), 2, (), ["shows 3 GPUs (2 x H100 SXM5 80GB, 1 x Turing", "promises 2"]),
        ((*H100, T400), 2, ("H200",), ["cluster_gpus names H200", "0000:17:00.0 H100"]),
        ((*H100, T400), 3, ("H100",), ["promises 3", "shows 2", "not named in cluster_gpus"]),
    ],
)
def test_preflight_counts_the_cluster_s_gpus(
    pci: tuple[PciDevice, ...], gpus: int, names: tuple[str, ...], parts: list[str]
) -> None:
    node = Node("gpu1", "gpu1", "10.0.0.5", "worker", gpus, False, cluster_gpus=names)
    [problem] = evaluated(node, choose(node, replace(CLEAN, pci=pci), LOCK.driver))
    assert all(part in problem.cause for part in parts)
    if not names and gpus < 3:
        assert "cluster_gpus" in problem.remedy


@pytest.mark.parametrize("value", ["H100", [1], [""], {"GPU-a": 1}])
def test_cluster_gpus_is_a_list_of_names(value: object) -> None:
    _, problems = parse_entry(Entry("gpu1", (), {"gpus": 2, "cluster_gpus": value}), "worker")
    assert "not a list of GPUs" in problems[0].cause


def test_cluster_gpus_without_gpus_is_a_mistake() -> None:
    _, problems = parse_entry(Entry("gpu1", (), {"cluster_gpus": ["H100"]}), "worker")
    assert "gpus is 0" in problems[0].cause


def test_the_fact_brings_drivers_functions_and_uuids() -> None:
    lines = [
        "uid\t0",
        "pci\t0000:17:00.0 0x2330 0x030200 physical nvidia",
        "pci\t0000:17:00.4 0x2330 0x030200 virtual vfio-pci",
        "pci\t0000:65:00.0 0x128b 0x030000 physical",
        "gpu_uuid\t0000:17:00.0 GPU-a",
        "gpu_uuid\t0000:65:00.0 GPU-????????-????-????-????-????????????",
        "clock\t1.0",
    ]
    assert parse(lines).pci == (
        PciDevice("0000:17:00.0", 0x2330, CARD, "nvidia", uuid="GPU-a"),
        PciDevice("0000:17:00.4", 0x2330, CARD, "vfio-pci", virtual=True),
        PciDevice("0000:65:00.0", 0x128B, VGA),
    )


def test_the_driver_s_option_names_uuids() -> None:
    assert options([]) == ""
    assert options(["GPU-b", "GPU-a"]).endswith("\noptions nvidia NVreg_ExcludedGpus=GPU-a,GPU-b\n")


def test_the_quickstart_counts_the_gpus_of_this_machine(tmp_path: Path) -> None:
    for gpu in (*H100, GT_710, *A100_VF):
        folder = tmp_path / gpu.slot
        folder.mkdir()
        for name, text in (
            ("vendor", "0x10de"), ("device", f"{gpu.device:#06x}"), ("class", gpu.kind),
        ):  # fmt: skip
            (folder / name).write_text(f"{text}\n")
        if gpu.virtual:
            (folder / "physfn").symlink_to("../0000:c1:00.0")
            (tmp_path / "0000:c1:00.0").mkdir(exist_ok=True)
            for name in ("vendor", "class"):
                (tmp_path / "0000:c1:00.0" / name).write_text("0x8086\n")
    assert gpu_choice.count_local(LOCK.driver, tmp_path) == 2
