"""What limits a GPU's work: each class, what nearly is one, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gpuboot.config.settings.profile import TABLE, Profile, thresholds
from gpuboot.monitoring.dashboards.classify import classification
from gpuboot.query.profile.advice import ADVICE
from gpuboot.query.profile.classes import Context, HostView, classify
from gpuboot.query.profile.counters import FIELDS, Means
from gpuboot.telemetry.fields import BY_NAME
from tests.unit.profile_samples import FREE, IDLE, LIMITS, NO_NVLINK, TRAINS


def means(samples: float = 1.0, variation: float | None = 0.1, **values: float | None) -> Means:
    present = {name: value for name, value in (TRAINS | values).items() if value is not None}
    return Means(present, samples, variation)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "compute_bound"),
        ({"tensor": 0.5, "sm": 0.8, "dram": 0.599}, "compute_bound"),
        ({"tensor": 0.1, "fp32": 0.6}, "compute_bound"),
        ({"tensor": 0.49}, "balanced"),
        ({"sm": 0.79}, "balanced"),
        ({"dram": 0.6, "tensor": 0.7}, "memory_bound"),
        ({"dram": 0.6, "tensor": 0.76}, "balanced"),  # 0.75 of the ceiling, and the pipe does more
        ({"dram": 0.65, "sm": 0.5, "tensor": 0.2}, "memory_bound"),
        ({"dram": 0.65, "sm": 0.49, "tensor": 0.2}, "latency_bound"),
        ({"dram": 0.65, "sm": 0.49, "tensor": 0.2, "engine": 0.79}, "balanced"),
        ({**IDLE, **FREE}, "idle"),
        ({**IDLE, **FREE, "engine": 0.049, "dram": 0.019}, "idle"),
        ({**IDLE, **FREE, "dram": None}, "idle"),
        (IDLE, "idle_held"),
        ({**IDLE, "engine": 0.05}, "balanced"),
        ({**IDLE, "dram": 0.02}, "balanced"),
        ({"hw_thermal": 0.05}, "thermally_throttled"),
        ({"hw_thermal": 0.049}, "compute_bound"),
        ({"hw_thermal": 0.5, "engine": 0.29, "sm": 0.2}, "balanced"),  # heat of its neighbours
        ({"sw_thermal": 0.2}, "thermally_throttled"),
        ({"sw_thermal": 0.19}, "compute_bound"),
        ({**IDLE, "power_brake": 0.01}, "thermally_throttled"),
        ({"power_cap": 0.9}, "compute_bound"),
        ({"tensor": 0.2, "nvlink_tx": 230e9}, "communication_bound"),
        ({"tensor": 0.2, "nvlink_tx": 220e9}, "balanced"),
        ({"tensor": 0.3, "nvlink_tx": 230e9}, "balanced"),
        ({"tensor": 0.2, "pcie_tx": 40e9}, "balanced"),  # the GPU has NVLink for that
        ({"tensor": 0.2, "pcie_tx": 40e9, **NO_NVLINK}, "communication_bound"),
        ({"tensor": 0.2, "pcie_rx": 40e9}, "pcie_bound"),
        ({"tensor": 0.2, "pcie_rx": 31e9}, "balanced"),
        ({"tensor": 0.2, "pcie_rx": 40e9, "pcie_width": None}, "balanced"),
        ({"tensor": 0.2, "pcie_rx": 20e9, "pcie_width": 8}, "pcie_bound"),
        ({"engine": 0.5, "sm": 0.4, "tensor": 0.2, "variation": 0.8}, "input_bound"),
        ({"engine": 0.5, "sm": 0.4, "tensor": 0.2, "variation": 0.5}, "balanced"),
        ({"engine": 0.7, "sm": 0.4, "tensor": 0.2, "variation": 0.8}, "balanced"),
        ({"engine": 0.9, "sm": 0.3, "tensor": 0.1}, "latency_bound"),
        ({"samples": 0.79}, "insufficient_data"),
        ({"engine": None, "util": 3.0, **FREE}, "idle"),
        ({"engine": None, "util": 3.0}, "idle_held"),
        ({"engine": None, "util": 90.0}, "busy"),
        ({"engine": None}, "insufficient_data"),
        ({"sm": None, "dram": None, "tensor": None, "fp32": None}, "busy"),  # MIG of a vGPU
    ],
)
def test_classes_and_what_is_nearly_one(values: dict[str, Any], name: str) -> None:
    classified = classify(means(**values), Context(nvlink_max=450e9), LIMITS)
    assert classified.name == name, classified
    for item in classified.evidence:
        assert (item.value >= item.limit) is item.above, item
        assert item.source


def test_a_pod_s_name_holds_an_idle_gpu() -> None:
    assert classify(means(**IDLE, **FREE), Context(has_holder=True), LIMITS).name == "idle_held"


def test_nvlink_that_nobody_knows_is_not_judged() -> None:
    busy = means(tensor=0.2, nvlink_tx=440e9)
    assert classify(busy, Context(), LIMITS).name == "balanced"


def test_input_is_suspected_until_the_host_tells() -> None:
    waits = means(engine=0.5, sm=0.4, tensor=0.2, variation=0.8)
    assert classify(waits, Context(), LIMITS).confidence == "low"
    explained = classify(waits, Context(host=HostView(iowait=0.4, cpu_throttled=0.1)), LIMITS)
    assert explained.confidence == "high"
    assert [item.what for item in explained.evidence][
        -1
    ] == "the host's CPUs wait for disks (iowait)"


def test_what_has_no_profiling_is_told_with_less_confidence() -> None:
    classified = classify(means(engine=None, util=90.0), Context(), LIMITS)
    assert classified.confidence == "low"
    assert "no profiling fields" in classified.notes[0]


def test_a_power_limit_is_a_note() -> None:
    classified = classify(means(power_cap=0.9), Context(), LIMITS)
    assert classified.notes == ("power_capped: held down by its power limit in 90% of the time",)


def test_numbers_say_whose_they_are() -> None:
    sources = {item.source for item in TABLE.values()}
    assert sources == {"gpuboot", "NVIDIA, DCGM user guide, profiling metrics"}
    site_thresholds = thresholds({"pipe_busy": 0.6})
    classified = classify(means(tensor=0.55), Context(), site_thresholds)
    assert classified.name == "balanced"
    assert {item.source for item in classified.evidence} >= {"profile.thresholds"}


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValidationError, match="no such threshold: pipe_bsy; there are: sm_needed"):
        Profile(thresholds={"pipe_bsy": 0.5})
    with pytest.raises(ValidationError, match="up to 1: idle_dram"):
        Profile(thresholds={"idle_dram": 2.0})


def test_the_dashboard_has_the_same_numbers() -> None:
    expression = classification()
    for name in ("sm_needed", "sm_poor", "idle_engine", "idle_dram", "at_work", "hw_thermal"):
        assert f" {LIMITS[name]:g}" in expression, name
    assert f"{LIMITS.busy_dram:g}" in expression


def test_the_page_has_every_class_and_number() -> None:
    page = (Path(__file__).parents[2] / "docs/profile.md").read_text()
    for name, item in TABLE.items():
        assert f"| `{name}` | {item.value:g} | {item.meaning} | {item.source} |" in page
    for name in ADVICE:
        assert f"`{name}`" in page


def test_every_counter_is_collected_by_default_and_every_class_has_advice() -> None:
    assert all(BY_NAME[name].default for name in FIELDS)
    assert set(ADVICE) >= {"idle_held", "communication_bound", "busy"}
    assert all(item.first and item.meaning for item in ADVICE.values())
