"""What Prometheus reads and cannot trust: exporters that come and go, frozen values, clocks."""

from __future__ import annotations

from tests.rules.cases_lost import LOST_NODE
from tests.rules.model import G0, G1, HOLDER, Case, dcgm, series, up, values

_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_ENGINE, _UTIL = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
_POD = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x2x4z"}


def _often(*parts: tuple[float | None, float], times: int) -> str:
    return " ".join([values(*parts)] * times)


def _restarts(text: str) -> dict[str, str]:
    return {
        series("kube_pod_container_status_restarts_total", container="exporter", **_POD): text,
        series("kube_pod_info", node="gpu1", **_POD): "1x400",
        up(): "1x400",
    }


_UNSTABLE = [
    Case("GPUExporterUnstable", "one scrape of three is answered, for an hour",
         {up(): f"1x20 {'1 0 0 ' * 40} 1x200", up("gpu2"): "1x400"},
         {20: [LOST_NODE], 65: [LOST_NODE]}, (10, 92)),
    Case("GPUExporterUnstable", "down four of every five minutes",
         {up(): f"1x20 {_often((1, 1), (0, 4), times=12)} 1x200"},
         {40: [LOST_NODE], 70: [LOST_NODE]}, (9, 92)),
    Case("GPUExporterUnstable", "it restarts every three minutes, down for half a minute",
         {up(): f"1x20 {_often((1, 2.5), (0, 0.5), times=20)} 1x200"},
         {30: [LOST_NODE], 70: [LOST_NODE]}, (9, 92), restart=True),
    Case("GPUExporterUnstable", "it restarts too fast for any scrape to miss it",
         _restarts(f"2x20 {' '.join(f'{n}x5' for n in range(3, 23))} 23x200"),
         {40: [LOST_NODE], 65: [LOST_NODE]}, (9, 95)),
    Case("GPUExporterUnstable", "three restarts: a driver, an engine and a node",
         {up(): f"1x20 {_often((0, 3), (1, 5), times=3)} 1x100"}, silent=(20, 30, 40, 60),
         restart=True),
    Case("GPUExporterUnstable", "down for good: that is another alert",
         {up(): values((1, 20), (0, 60))}, silent=(30, 70)),
    Case("GPUExporterUnstable", "its container restarted twice in an hour",
         _restarts("7x40 8x40 9x100"), silent=(30, 45, 80)),
    Case("GPUExporterUnstable", "another pod restarts all the time",
         {series("kube_pod_container_status_restarts_total", container="main", namespace="ml",
                 pod="train-0"): "0+1x200",
          series("kube_pod_info", node="gpu1", namespace="ml", pod="train-0"): "1x200"},
         silent=(30, 80)),
]  # fmt: skip

_FROZEN = [
    Case("GPUMetricsFrozen", "the page is the same for half an hour, then moves again",
         {dcgm(_ENERGY): "1e9+3000000x20 1063000000x60 1070000000+3000000x60",
          dcgm(_ENERGY, G1): "1e9+1500000x140"},
         {32: [G0], 39: [G0]}, (10, 20, 29, 41)),
    Case("GPUMetricsFrozen", "it goes on when the exporter restarts, and when its pods change",
         {dcgm(_ENERGY): "1e9x60 _x2 1e9x60", dcgm(_ENERGY, **HOLDER): "_x20 1e9x20"},
         {25: [G0], 45: [G0]}, restart=True),
    Case("GPUMetricsFrozen", "an idle GPU uses little, and something",
         {dcgm(_ENERGY): "1e9+300000x120"}, silent=(25, 59)),
    Case("GPUMetricsFrozen", "the exporter is down: that is another alert",
         {dcgm(_ENERGY): "1e9+3000000x20 stale"}, silent=(12, 25, 40), restart=True),
    Case("GPUMetricsFrozen", "it samples once a minute, and stands still for ten",
         {dcgm(_ENERGY): "1e9+6000000x20 1120000000x10 1130000000+6000000x40"},
         silent=(25, 31, 40), step=60),
    Case("GPUMetricsFrozen", "its profiling stays at 0 while kernels run, until DCGM restarts",
         {dcgm(_ENGINE, **HOLDER): "0.9x20 0x100 stale 0.9x60", dcgm(_UTIL, **HOLDER): "99x200",
          dcgm(_ENGINE, G1): "0.9x200", dcgm(_UTIL, G1): "99x200"},
         {40: [G0], 59: [G0]}, (20, 64), restart=True),
    Case("GPUMetricsFrozen", "an idle GPU, of which one sample of GPU_UTIL is of millions; and a "
         "GPU that serves a request now and then",
         {dcgm(_ENGINE): "0x200", dcgm(_UTIL): "0x60 808334905 0x200",
          dcgm(_ENGINE, G1): "0 0 0 0 0 0 0 0 0 0.004 " * 20,
          dcgm(_UTIL, G1): "0 0 0 0 0 0 0 0 0 90 " * 20},
         silent=(20, 31, 40, 60)),
    Case("GPUMetricsFrozen", "a GPU without the counter, by DCGM's mark and by 0",
         {dcgm(_ENERGY): "9223372036854775794x90", dcgm(_ENERGY, G1): "0x90"}, silent=(25, 44)),
]  # fmt: skip


_HOST = {"job": "node-exporter", "instance": "10.0.0.1:9100"}


def _clock(text: str, **labels: str) -> dict[str, str]:
    """The time that a host tells, in seconds of promtool's clock, which begins at 0."""
    return {
        series("node_time_seconds", **_HOST, **labels): text,
        series("node_uname_info", **_HOST, **labels, nodename="gpu1"): "1x400",
        series("node_time_seconds", job="node-exporter", instance="10.0.0.2:9100"): "0+30x400",
        series("node_uname_info", job="node-exporter", instance="10.0.0.2:9100",
               nodename="gpu2"): "1x400",
    }  # fmt: skip


_CLOCKS = [
    Case("NodeClockWrong", "it jumps an hour ahead, until it is set",
         _clock("0+30x40 4830+30x40 2460+30x40"), {24: [LOST_NODE], 40: [LOST_NODE]}, (19, 21, 42)),
    Case("NodeClockWrong", "it is 40 s slow", _clock("-40+30x80"),
         {5: [LOST_NODE], 30: [LOST_NODE]}),
    Case("NodeClockWrong", "its node-exporter was replaced while Prometheus was away",
         _clock("-40+30x80", pod="a") | _clock("-40+30x80", pod="b"),
         {5: [LOST_NODE], 30: [LOST_NODE]}),
    Case("NodeClockWrong", "20 s slow, and a scrape that takes long", _clock("-20+30x80"),
         silent=(5, 30)),
    Case("NodeClockWrong", "a Docker host, whose target has its name",
         _clock("600+30x80", node="gpu1"), {5: [LOST_NODE]}),
    Case("NodeClockWrong", "node-exporter is restarted", _clock("0+30x40 _x6 1380+30x40"),
         silent=(19, 21, 24, 30)),
]  # fmt: skip

CASES = [*_UNSTABLE, *_FROZEN, *_CLOCKS]
