"""What the less obvious queries of the dashboards answer, by promtool on made-up series."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.hosts import mig_profiles
from gpuboot.monitoring.dashboards import classify, cluster_dashboard, gpu_hours, node_dashboard
from gpuboot.monitoring.dashboards.spec import State
from gpuboot.usage import shares as of_gpus
from lab.dashboard_preview.panels import ALL, interpolate
from tests.tools import promtool

VARIABLES = dict.fromkeys(("node", "gpu", "modelName", "profile", "namespace", "pod"), ALL)
GPU = 'node="n",UUID="u",gpu="0",modelName="m"'


def assert_samples(
    tmp_path: Path, expr: str, series: dict[str, str], expected: list[tuple[str, float]], at: str
) -> None:
    """promtool must find just these samples. + series: name -> values in promtool's notation"""
    test = {
        "rule_files": [],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": k, "values": v} for k, v in series.items()],
                "promql_expr_test": [
                    {
                        "expr": interpolate(expr, VARIABLES | {"__range": "3600s"}),
                        "eval_time": at,
                        "exp_samples": [{"labels": labels, "value": v} for labels, v in expected],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test))
    result = subprocess.run(
        [str(promtool()), "test", "rules", str(path)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def gpu(**shares: float) -> dict[str, str]:
    """Series of one GPU: recorded means by name, pipes in capitals, throttling by reason."""
    series_values = {}
    for name, share in shares.items():
        if name.isupper():
            series = f"DCGM_FI_PROF_PIPE_{name}_ACTIVE{{{GPU}}}"
        elif name in {"hw_thermal", "sw_thermal", "power_brake"}:
            series = f'gpu:throttle:ratio5m{{node="n",UUID="u",gpu="0",reason="{name}"}}'
        else:
            series = f"gpu:{name}:avg5m{{{GPU}}}"
        series_values[series] = f"{share}x20"
    return series_values


BUSY = {"TENSOR": 0.6, "FP64": 0.0, "FP32": 0.1, "FP16": 0.0}
ALL_IDLE = dict.fromkeys(BUSY, 0.0)


@pytest.mark.parametrize(
    ("expected", "shares"),
    [
        (classify.IDLE, {"engine_active": 0.01, "sm_active": 0.01, "dram_active": 0, **ALL_IDLE}),
        (
            classify.COMPUTE,
            {"engine_active": 0.98, "sm_active": 0.9, "dram_active": 0.4, **BUSY},
        ),
        (
            classify.MEMORY,
            {"engine_active": 0.98, "sm_active": 0.9, "dram_active": 0.7, **BUSY},
        ),
        # memory busy, but a pipe busier than memory is to its ceiling
        (
            classify.BALANCED,
            {"engine_active": 0.98, "sm_active": 0.9, "dram_active": 0.62, **BUSY, "TENSOR": 0.9},
        ),
        (
            classify.LATENCY,
            {"engine_active": 0.95, "sm_active": 0.2, "dram_active": 0.1, **ALL_IDLE},
        ),
        (
            classify.BALANCED,
            {"engine_active": 0.6, "sm_active": 0.6, "dram_active": 0.2, **ALL_IDLE},
        ),
        (
            classify.THROTTLED,
            {
                "engine_active": 0.98,
                "sm_active": 0.9,
                "dram_active": 0.4,
                **BUSY,
                "hw_thermal": 0.1,
            },
        ),
        # the driver's mild thermal slowdown alone is not yet the limit
        (
            classify.COMPUTE,
            {
                "engine_active": 0.98,
                "sm_active": 0.9,
                "dram_active": 0.4,
                **BUSY,
                "sw_thermal": 0.1,
            },
        ),
        # heat while nothing runs limits nothing
        (
            classify.IDLE,
            {
                "engine_active": 0.0,
                "sm_active": 0.0,
                "dram_active": 0.0,
                **ALL_IDLE,
                "hw_thermal": 0.5,
            },
        ),
        # the power brake is a fault whatever runs
        (
            classify.THROTTLED,
            {
                "engine_active": 0.0,
                "sm_active": 0.0,
                "dram_active": 0.0,
                **ALL_IDLE,
                "power_brake": 0.02,
            },
        ),
        # GPUs without profiling fields: only idle or unknown can be told
        (classify.IDLE, {"engine_active": 0.01}),
        (classify.UNKNOWN, {"engine_active": 0.9}),
    ],
)
def test_what_limits_a_gpu(expected: State, shares: dict[str, float], tmp_path: Path) -> None:
    labels = '{node="n", gpu="0"}'
    expr = classify.classification()
    assert_samples(tmp_path, expr, gpu(**shares), [(labels, expected.value)], "15m")


def test_a_full_pcie_link_is_suspected_to_starve_the_gpu(tmp_path: Path) -> None:
    series = gpu(engine_active=0.6, sm_active=0.6, dram_active=0.2, **ALL_IDLE) | {
        f"DCGM_FI_DEV_PCIE_LINK_WIDTH{{{GPU}}}": "16x20",
        f"DCGM_FI_DEV_PCIE_MAX_LINK_GEN{{{GPU}}}": "4x20",
        f"DCGM_FI_PROF_PCIE_RX_BYTES{{{GPU}}}": "20000000000x20",
    }
    labels = '{node="n", gpu="0"}'
    assert_samples(
        tmp_path, classify.classification(), series, [(labels, classify.INPUT.value)], "15m"
    )


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0, node_dashboard.FREE_RUNNING.value),
        (1, 1),
        (4, 2),
        (4 + 64, 6),
        (128 + 64, 7),
        (2, node_dashboard.FREE_RUNNING.value),  # an application's own clock setting
        (256, node_dashboard.FREE_RUNNING.value),  # display clocks
    ],
)
def test_the_gravest_reason_for_low_clocks(mask: int, expected: int, tmp_path: Path) -> None:
    series = {f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{GPU}}}": f"{mask}x20"}
    assert_samples(
        tmp_path, node_dashboard.throttle_expr(), series, [('{node="n", gpu="0"}', expected)], "5m"
    )


def requested(pod: str, resource: str, values: str) -> dict[str, str]:
    labels = f'namespace="a",pod="{pod}",node="n",resource="{resource}"'
    return {f"namespace_pod:gpu_requested:sum{{{labels}}}": values}


def test_hours_are_counted_and_not_a_mean_stretched_over_the_day(tmp_path: Path) -> None:
    """A pod that held two GPUs for ten minutes of the hour held a third of a GPU hour."""
    series = requested("short", "nvidia_com_gpu", "_x30 2x9 stale")
    assert_samples(tmp_path, gpu_hours.hours(gpu_hours.HELD_GPUS), series, [("{}", 20 / 60)], "60m")


def test_a_mig_instance_counts_as_its_share(tmp_path: Path) -> None:
    ten_minutes = "_x30 1x9 stale"
    series = requested("whole", "nvidia_com_gpu", ten_minutes)
    series |= requested("slice", "nvidia_com_mig_1g_10gb", ten_minutes)
    series |= requested("half", "nvidia_com_mig_3g_40gb", ten_minutes)
    expr = f"round(1000 * {gpu_hours.hours(gpu_hours.HELD_GPUS, 'namespace')})"
    expected = round(1000 * (1 + 1 / 7 + 1 / 2) / 6)
    assert_samples(tmp_path, expr, series, [('{namespace="a"}', expected)], "60m")


def _share(profile: str) -> float:
    return next(
        float(share)
        for pattern, share in gpu_hours.shares().items()
        if re.fullmatch(pattern, profile)
    )


def test_shares_are_those_of_a_report_of_costs() -> None:
    """Of the resources' names as well, which kube-state-metrics writes with underscores."""
    for card in mig_profiles.CARDS:
        for profile in (item.name for item in card.profiles):
            # names that two cards give to other parts of a GPU
            if card.models and mig_profiles.size(profile) not in ((1, 10), (1, 35)):
                share = pytest.approx(of_gpus.share(profile, f"NVIDIA {card.models[0]}"))
                assert _share(profile) == share, (card.name, profile)
                assert _share(re.sub(r"[.+-]", "_", profile)) == share, (card.name, profile)
    assert _share("1g.10gb") == of_gpus.share("1g.10gb", "NVIDIA A100-SXM4-80GB")


def test_an_a30_in_four_is_one_gpu(tmp_path: Path) -> None:
    series = requested("slice", "nvidia_com_mig_1g_6gb", "_x30 4x9 stale")
    expr = f"round(1000 * {gpu_hours.hours(gpu_hours.HELD_GPUS)})"
    assert_samples(tmp_path, expr, series, [("{}", round(1000 / 6))], "60m")


def test_a_time_slice_is_a_part_of_a_gpu(tmp_path: Path) -> None:
    series = requested("slice", "nvidia_com_gpu_shared", "_x30 1x9 stale")
    series |= {
        'node:gpu_capacity:sum{node="n"}': "8x60",
        'node:gpu_visible:count{node="n"}': "2x60",
    }
    expr = f"round(1000 * {gpu_hours.hours(gpu_hours.HELD_GPUS)})"
    assert_samples(tmp_path, expr, series, [("{}", round(1000 / 4 / 6))], "60m")


def test_pods_that_share_a_gpu_share_its_activity(tmp_path: Path) -> None:
    labels = 'namespace="a",node="n",UUID="GPU-1"'
    series = {
        f'gpu:engine_active:avg5m{{{labels},pod="{pod}"}}': "_x30 0.8x9 stale" for pod in "xy"
    }
    expected = [(f'{{namespace="a", pod="{pod}"}}', float(round(400 / 6))) for pod in "xy"]
    expr = f"round(1000 * {gpu_hours.hours(gpu_hours.USED, 'namespace, pod')})"
    assert_samples(tmp_path, expr, series, expected, "60m")


def test_the_largest_job_fits_one_schedulable_node(tmp_path: Path) -> None:
    series = {
        'node:gpu_capacity:sum{node="a"}': "8x5",
        'node:gpu_allocatable:sum{node="a"}': "8x5",
        'node:gpu_requested:sum{node="a"}': "7x5",
        'node:gpu_capacity:sum{node="b"}': "8x5",
        'node:gpu_allocatable:sum{node="b"}': "7x5",
        'node:gpu_requested:sum{node="b"}': "4x5",
        'node:gpu_capacity:sum{node="c"}': "8x5",
        'node:gpu_allocatable:sum{node="c"}': "8x5",
        'node:gpu_requested:sum{node="c"}': "0x5",
        'kube_node_spec_unschedulable{node="c"}': "1x5",
    }
    (panel,) = (p for p in cluster_dashboard.CAPACITY if p.title == "Largest job")
    assert_samples(tmp_path, panel.expressions[0], series, [("{}", 3)], "3m")


def test_a_node_whose_exporter_is_gone_misses_all_its_gpus(tmp_path: Path) -> None:
    series: dict[str, Any] = {
        'node:gpu_expected:count{node="a"}': "8x5",
        'node:gpu_visible:count{node="a"}': "7x5",
        'node:gpu_expected:count{node="b"}': "4x5",
    }
    (panel,) = (p for p in cluster_dashboard.CAPACITY if p.title == "Missing")
    assert_samples(tmp_path, panel.expressions[0], series, [("{}", 5)], "3m")
