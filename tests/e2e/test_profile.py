"""Work of each class on simulated GPUs, and work that is nearly of it: `gpuboot profile` tells."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.e2e.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-profile", "--gpus", "8,8")

# load of each GPU of a machine, and its class
WORK: dict[str, tuple[tuple[str, str], ...]] = {
    "gpu1": (
        ("util 95; tensor_active 60", "compute_bound"),
        ("util 95; tensor_active 20; dram_active 70", "memory_bound"),
        ("util 95; sm_active 20; tensor_active 5; dram_active 10", "latency_bound"),
        ("util 90; tensor_active 10; fp32_active 10; nvlink_active 70", "communication_bound"),
        ("util 90; tensor_active 10; fp32_active 10; pcie_rx_mib 40000", "pcie_bound"),
        ("util_max 60; sm_active 30; tensor_active 10; dram_active 20", "input_bound"),
        ("util 90; hw_thermal 1", "thermally_throttled"),
        ("", "idle"),
    ),
    "gpu2": (
        ("util 95; tensor_active 45; fp32_active 10", "balanced"),
        ("util 95; tensor_active 20; dram_active 55", "balanced"),
        ("util 75; sm_active 20; tensor_active 5; dram_active 10", "balanced"),
        ("util 90; tensor_active 10; fp32_active 10; nvlink_active 40", "balanced"),
        ("util 90; tensor_active 10; fp32_active 10; pcie_rx_mib 20000", "balanced"),
        ("util 8; sm_active 10; tensor_active 1; dram_active 1", "balanced"),
        ("util 90; tensor_active 60; power_cap 1", "compute_bound"),
        ("memory_used_mib 40000", "idle_held"),
    ),
}


def profiled(site: Lab, *arguments: str) -> dict[str, Any]:
    result = site.command(
        ["gpuboot", "profile", "inventories/lab.py", *arguments, "--window", "5", "--json"]
    )
    assert result.code in (0, 2), result.details
    profile: dict[str, Any] = json.loads(result.out)
    return profile


def test_what_has_just_begun_is_refused(site: Lab) -> None:
    for machine, work in WORK.items():
        for gpu, (keys, _) in enumerate(work):
            for key in filter(None, keys.split("; ")):
                words = ("set", str(gpu), *key.split())
                assert site.lab("fault", "--name", site.name, machine, *words).code == 0
    pod = profiled(site, "pod", "nobody", "-n", "default")
    assert "asked for no GPU" in pod["reason"]


@pytest.mark.parametrize("machine", WORK)
def test_each_class_is_named_and_nothing_that_is_nearly_one(site: Lab, machine: str) -> None:
    if machine == "gpu1":
        time.sleep(330)  # the means are of five minutes
    profiles = {gpu["gpu"]: gpu for gpu in profiled(site, "node", machine)["gpus"]}
    evidence = {gpu: (profile["class"], profile["evidence"]) for gpu, profile in profiles.items()}
    expected = {str(gpu): name for gpu, (_, name) in enumerate(WORK[machine])}
    assert {gpu: profile["class"] for gpu, profile in profiles.items()} == expected, evidence
    print(site.command(["gpuboot", "profile", "inventories/lab.py", "node", machine]).out)


def test_a_power_limit_is_a_note(site: Lab) -> None:
    profiles = {gpu["gpu"]: gpu for gpu in profiled(site, "node", "gpu2")["gpus"]}
    assert any("power_capped" in note for note in profiles["6"]["notes"])
