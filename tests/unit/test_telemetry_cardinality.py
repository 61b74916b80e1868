"""How many series a cluster makes, and what docs/metrics.md says about it."""

from __future__ import annotations

from pathlib import Path

from gpuboot.config.settings import parse_settings
from gpuboot.telemetry import FIELDS, Limit, Shape, collected, disk_bytes, memory_bytes, series

HEALTH_WATCHES, CLOCK_REASONS, XIDS, SCRAPE = 11, 9, 2, 5
HOPPER = (Limit.BEFORE_AMPERE, Limit.VGPU, Limit.NVLINK_5, Limit.FAN)


def test_one_gpu_is_the_sum_of_its_fields() -> None:
    plain = [f for f in FIELDS if f.default and f.kind != "label" and f.id is not None]
    expected = len(plain) + HEALTH_WATCHES + CLOCK_REASONS + XIDS
    assert series(parse_settings({}), Shape()).gpu == expected


def test_a_hundred_nodes_of_eight_gpus() -> None:
    counts = series(parse_settings({}), Shape(100, 8))
    assert counts.node == 8 * counts.gpu + SCRAPE
    assert counts.total == 100 * counts.node
    # the most that DGX-like nodes make: what Prometheus must be able to hold by default
    assert 60_000 < counts.total < 75_000
    assert memory_bytes(counts.total, 15) < 0.5e9
    assert disk_bytes(counts.total, 15, 15 * 86400) < 20e9


def test_fields_that_a_gpu_lacks_make_no_series() -> None:
    every, hopper = (
        series(parse_settings({}), Shape(missing=limits)).gpu for limits in ((), HOPPER)
    )
    missing_fields = [f for f in FIELDS if f.default and set(f.limits) & set(HOPPER)]
    assert every - hopper == len(missing_fields) > 0


def test_a_geforce_has_neither_profiling_nor_ecc() -> None:
    limits = (Limit.PROFILING, Limit.ECC, Limit.NVLINK, Limit.FABRIC)
    assert (
        series(parse_settings({}), Shape(missing=limits)).gpu
        < series(parse_settings({}), Shape()).gpu - 20
    )


def test_slices_have_every_series_but_health_is_the_gpus() -> None:
    full_count = series(parse_settings({}), Shape()).gpu
    sliced = series(parse_settings({}), Shape(slices=7)).gpu
    assert sliced == 7 * (full_count - HEALTH_WATCHES) + HEALTH_WATCHES


def test_sharing_repeats_series_for_every_pod() -> None:
    full_count = series(parse_settings({}), Shape()).gpu
    shared = series(parse_settings({"gpu_operator": {"time_slices": 4}}), Shape()).gpu
    assert shared == 4 * full_count + 2, "GPU_UTIL and FB_USED have the whole GPU's series as well"


def test_each_further_pod_makes_them_anew() -> None:
    assert (
        series(parse_settings({}), Shape(holders=5)).gpu
        == 5 * series(parse_settings({}), Shape()).gpu
    )


def test_an_opt_in_field_is_one_more() -> None:
    extended = parse_settings({"exporter": {"counters": ["DCGM_FI_DEV_FAN_SPEED"]}})
    assert series(extended, Shape()).gpu == series(parse_settings({}), Shape()).gpu + 1
    peers = parse_settings({"exporter": {"counters": ["DCGM_EXP_P2P_STATUS"]}})
    assert series(peers, Shape(gpus=8)).gpu == series(parse_settings({}), Shape()).gpu + 7


def test_a_site_s_own_file_is_counted(tmp_path: Path) -> None:
    collectors = tmp_path / "own.csv"
    collectors.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_FI_DEV_CPU_UTIL_TOTAL, gauge, u\n")
    settings = parse_settings({"exporter": {"collectors_file": str(collectors)}})
    assert len(collected(settings)) == series(settings, Shape()).gpu == 2


def test_pod_labels_cost_memory_and_no_series() -> None:
    settings = parse_settings({"exporter": {"pod_labels": ["team"]}})
    assert series(settings, Shape()) == series(parse_settings({}), Shape())
    assert memory_bytes(1000, 15, pod_labels=2) > memory_bytes(1000, 15)
