"""Which GPUs an exporter shows, when they lack sensors, are cut by MIG, or are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.verify.checks import metrics_checks as checks
from gpuboot.verify.devices import Sensor
from gpuboot.verify.evidence import ExporterScrape
from gpuboot.verify.prometheus import Prometheus, gpu_readings, parse_exposition
from tests.unit import recordings
from tests.unit.evidence import (
    evidence,
    gpu,
    host,
    metrics,
    only,
    uuid,
)
from tests.unit.test_checks_metrics import LIMITS


def exposition(values: Mapping[str, float], labels: str) -> str:
    return "".join(f"{name}{{{labels}}} {value}\n" for name, value in values.items())


@pytest.mark.parametrize(
    ("values", "sensors", "detail"),
    [
        (recordings.VGPU, ("memory",), "no temperature, no power draw, 40959 MiB"),
        (recordings.GB10, ("temperature", "power"), "50 °C, 12.3 W, no device memory"),
    ],
)
def test_kinds_that_lack_sensors_are_present_by_the_anchor(
    values: dict[str, float], sensors: tuple[Sensor, ...], detail: str
) -> None:
    """vGPU guests were `failed` for ever for want of a temperature, GB10 of a frame buffer."""
    text = exposition(values, f'gpu="0",UUID="{uuid("gpu1", 0)}",modelName="GRID A100-40C"')
    answer = ExporterScrape(
        node="gpu1", pod="exporter", readings=gpu_readings(parse_exposition(text), "gpu1")
    )
    gpu_host = host("gpu1", 1, gpus=(gpu("gpu1", 0, sensors=sensors),))
    observed = evidence(hosts=(gpu_host,), metrics=metrics(exporters=(answer,)))
    (finding,) = checks.exporter(gpu_host, observed, LIMITS)
    assert (finding.status, finding.detail) == ("pass", detail)
    # the memory's temperature is 0 where there is no such sensor: it is no reading of the GPU's
    assert values["DCGM_FI_DEV_MEMORY_TEMP"] == 0


def test_a_sensor_that_nvidia_smi_reads_is_asked_of_the_exporter() -> None:
    text = exposition(recordings.VGPU, f'UUID="{uuid("gpu1", 0)}"')
    answer = ExporterScrape(
        node="gpu1", pod="exporter", readings=gpu_readings(parse_exposition(text), "gpu1")
    )
    gpu_host = host("gpu1", 1, gpus=(gpu("gpu1", 0),))
    observed = evidence(hosts=(gpu_host,), metrics=metrics(exporters=(answer,)))
    failed = only(checks.exporter(gpu_host, observed, LIMITS), "fail")
    assert "nvidia-smi shows temperature, power" in failed.detail
    own_file = replace(LIMITS, every_sensor=False)
    assert {f.status for f in checks.exporter(gpu_host, observed, own_file)} == {"pass"}


def test_what_is_left_of_a_gpu_that_fell_off_the_bus_is_no_presence() -> None:
    """DCGM keeps counting its XIDs, and blanks all that is read from it."""
    text = exposition(
        {"DCGM_FI_DEV_XID_ERRORS": 79, "DCGM_FI_DEV_SM_CLOCK": 9223372036854775794},
        f'UUID="{uuid("gpu1", 0)}"',
    )
    (reading_,) = gpu_readings(parse_exposition(text), "gpu1")
    assert not reading_.anchored


def test_slices_are_read_apart() -> None:
    """Labels as dcgm-exporter writes them (internal/pkg/rendermetrics/render_metrics.go)."""
    text = "".join(
        exposition(
            recordings.SLICE,
            f'gpu="0",UUID="GPU-1",modelName="NVIDIA A800-SXM4-80GB",GPU_I_PROFILE="2g.20gb",'
            f'GPU_I_ID="{gi}",pod="train-{gi}",namespace="ml"',
        )
        for gi in (3, 5)
    )
    readings = gpu_readings(parse_exposition(text), "gpu1")
    assert [(item.key, item.pod) for item in readings] == [
        (("GPU-1", "3"), "ml/train-3"),
        (("GPU-1", "5"), "ml/train-5"),
    ]


def test_an_idle_gpu_of_a_trimmed_list_has_memory_all_the_same() -> None:
    """Used memory alone is 0 on an idle GPU, which says nothing about its size."""
    text = exposition({"DCGM_FI_DEV_FB_USED": 0, "DCGM_FI_DEV_SM_CLOCK": 210}, 'UUID="GPU-1"')
    assert gpu_readings(parse_exposition(text), "gpu1")[0].memory is None


def test_prometheus_is_asked_for_all_anchors_at_once() -> None:
    queries: list[str] = []

    class Reader:
        def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
            queries.append((query or {})["query"])
            labels = {"UUID": "GPU-1", "GPU_I_ID": "7", "node": "gpu1"}
            return {
                "status": "success",
                "data": {"result": [{"metric": labels, "value": [1000.0, "995.0"]}]},
            }

    (sample,) = Prometheus(Reader(), "").gpu_series()
    assert (sample.key, sample.age_s) == (("GPU-1", "7"), 5.0)
    assert queries == [
        "timestamp(DCGM_FI_DEV_SM_CLOCK) or on (instance, UUID, GPU_I_ID) "
        "timestamp(DCGM_FI_DEV_GPU_TEMP) or on (instance, UUID, GPU_I_ID) "
        "timestamp(DCGM_FI_DEV_GPU_UTIL)"
    ]


def test_a_series_that_ended_while_prometheus_was_away_is_not_read() -> None:
    """A drain moved Prometheus as well: the pod that was drained stays in its answers."""

    class Reader:
        def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
            rows = [("ml/serve-1", "a", 760.0), ("ml/serve-2", "a", 990.0), ("", "b", 950.0)]
            result = [
                {
                    "metric": {
                        "UUID": "GPU-1", "instance": instance,
                        "namespace": pod.partition("/")[0], "pod": pod.partition("/")[2],
                    },
                    "value": [1000.0, str(scraped)],
                }
                for pod, instance, scraped in rows
            ]  # fmt: skip
            return {"status": "success", "data": {"result": result}}

    samples = Prometheus(Reader(), "").gpu_series()
    assert [(item.pod, item.age_s) for item in samples] == [("ml/serve-2", 10.0), ("", 50.0)]
