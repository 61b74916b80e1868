"""How busy GPUs are: numbers with their age and source, and never a number for what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpuboot.query.latest_samples import Value
from gpuboot.query.usage import Answer, Usage
from gpuboot.verify.prometheus import Prometheus, PrometheusError

NOW = 10_000.0
ENGINE, SM = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"
UTIL, USED, FREE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
POD = {"namespace": "team-a", "pod": "trainer-0"}
VALUES = {ENGINE: 0.5, SM: 0.25, UTIL: 90.0, USED: 20000.0, FREE: 60000.0}


def samples(
    uuid: str, values: Mapping[str, float] = VALUES, age: float = 4.0, **labels: str
) -> list[dict[str, Any]]:
    """Series of one GPU, scraped every 15 s until `age` seconds ago."""
    times = [NOW - age - 15 * step for step in range(8)]
    return [
        {
            "metric": {"__name__": name, "UUID": uuid, **POD, **labels},
            "values": [[time, str(value)] for time, value in zip(times, [value] * 8, strict=True)],
        }
        for name, value in values.items()
    ]


class Fake:
    """Prometheus' HTTP API: series for range selectors, and answers by a part of the query."""

    def __init__(self, series: list[dict[str, Any]], **vectors: list[dict[str, Any]]) -> None:
        self.series = series
        self.vectors = vectors
        self.requests: list[str] = []

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        expression = dict(query or {})["query"]
        self.requests.append(expression)
        if expression == "vector(time())":
            return self._answer("vector", [{"metric": {}, "value": [NOW, str(NOW)]}])
        if expression.startswith("{__name__=~"):
            pod_rows = [row for row in self.series if "pod" in row["metric"]]
            return self._answer("matrix", pod_rows)
        if expression.endswith("]"):
            name = expression.partition("{")[0]
            named_rows = [row for row in self.series if row["metric"]["__name__"] == name]
            return self._answer("matrix", named_rows)
        for part, rows in self.vectors.items():
            if part in expression:
                return self._answer("vector", rows)
        return self._answer("vector", [])

    @staticmethod
    def _answer(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"status": "success", "data": {"resultType": kind, "result": rows}}


def row(value: float, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [NOW, str(value)]}


def usage_of(fake: Fake, **options: float) -> Answer:
    return Usage(Prometheus(fake, ""), **options).of_pod("team-a", "trainer-0")


def reason(answer: Answer, metric: str = "engine") -> str:
    value = answer.values[metric]
    assert value.value is None
    return value.reason


def test_a_busy_pod() -> None:
    fake = Fake(samples("GPU-a"))
    answer = usage_of(fake)
    assert {name: value.value for name, value in answer.values.items()} == {
        "engine": 0.5,
        "sm": 0.25,
        "memory": 0.25,
    }
    engine = answer.values["engine"]
    assert (engine.age_s, engine.samples) == (4.0, 8)
    assert engine.source == (
        f'avg(avg_over_time({ENGINE}{{namespace="team-a",pod="trainer-0"}}[2m]))'
    )
    assert answer.gpus == ("GPU-a",)
    assert answer.is_known()
    assert fake.requests[1].endswith(',namespace="team-a",pod="trainer-0"}[10m]')


def test_idle_is_a_number_and_no_data_is_none() -> None:
    idle = usage_of(Fake(samples("GPU-a", VALUES | {ENGINE: 0.0, UTIL: 0.0})))
    assert idle.values["engine"].value == 0.0
    empty_answer = usage_of(Fake([]))
    assert empty_answer.values["engine"].value is None
    assert not empty_answer.is_known()


def test_the_mean_of_all_gpus() -> None:
    series = [*samples("GPU-a"), *samples("GPU-b", VALUES | {ENGINE: 1.0, USED: 60000.0})]
    answer = usage_of(Fake(series))
    assert answer.values["engine"].value == 0.75
    assert answer.values["memory"].value == 80000 / 200000


def test_only_the_window_counts() -> None:
    series = samples("GPU-a", {ENGINE: 1.0, USED: 1.0, FREE: 1.0}, age=0)
    series[0]["values"][4:] = [[time, "0"] for time, _ in series[0]["values"][4:]]
    assert usage_of(Fake(series), window_s=50).values["engine"].value == 1.0
    assert usage_of(Fake(series), window_s=120).values["engine"].value == 0.5


def test_instances_under_mig_are_told_apart() -> None:
    instance = {name: value for name, value in VALUES.items() if name != UTIL}
    series = [
        *samples("GPU-a", instance, GPU_I_ID="1"),
        *samples("GPU-a", instance | {ENGINE: 0.0}, GPU_I_ID="2"),
    ]
    answer = usage_of(Fake(series))
    assert answer.gpus == ("GPU-a/1", "GPU-a/2")
    assert answer.values["engine"].value == 0.25


def test_a_shared_gpu_is_one_gpu_and_said_to_be_shared() -> None:
    series = [*samples("GPU-a", vgpu="0"), *samples("GPU-a", vgpu="1", pod="trainer-1")]
    answer = Usage(Prometheus(Fake(series), "")).of_namespace("team-a")
    assert answer.gpus == ("GPU-a",)
    assert answer.values["memory"].value == 0.25
    assert "whole GPU" in answer.notes[0]


def test_the_memory_of_a_shared_gpu_is_that_of_all_its_pods() -> None:
    """A pod's FB_USED is its own part there, and FB_FREE that of the device."""
    device_rows = [{"metric": {"UUID": "GPU-a", "__name__": USED}, "values": [[NOW - 4, "20000"]]}]
    zero_series = samples("GPU-a", VALUES | {USED: 0.0}, vgpu="0", container="main")
    assert usage_of(Fake(zero_series + device_rows)).values["memory"].value == 0.25


def test_old_samples_are_no_answer() -> None:
    answer = usage_of(Fake(samples("GPU-a", age=95)))
    assert f"the newest sample of {ENGINE} is 95 s old" in reason(answer)
    assert answer.values["engine"].age_s == 95.0
    assert usage_of(Fake(samples("GPU-a", age=95)), stale_s=100).is_known()


def test_one_silent_gpu_of_two_spoils_the_mean() -> None:
    answer = usage_of(Fake([*samples("GPU-a"), *samples("GPU-b", age=95)]))
    assert reason(answer).startswith("1 of 2 GPUs: GPU-b: the newest sample")


def test_a_gpu_that_was_given_back_does_not_count() -> None:
    series = [*samples("GPU-a"), *samples("GPU-b", age=95, pod="ended")]
    fake = Fake(series, **{"timestamp(": [row(NOW - 3, UUID="GPU-b")]})
    answer = Usage(Prometheus(fake, "")).of_namespace("team-a")
    assert answer.gpus == ("GPU-a",)
    assert answer.is_known()


def test_without_profiling_fields() -> None:
    geforce = {UTIL: 90.0, USED: 20000.0, FREE: 60000.0}
    answer = usage_of(Fake(samples("GPU-a", geforce)))
    engine = answer.values["engine"]
    assert engine.value == pytest.approx(0.9)
    assert engine.source.endswith("/ 100")
    assert "no profiling fields (GeForce, vGPU)" in reason(answer, "sm")
    assert not answer.is_known()
    assert answer.is_known(["engine", "memory"])


def test_while_somebody_profiles_nothing_else_stands_in() -> None:
    paused = {UTIL: 90.0, USED: 20000.0, FREE: 60000.0}
    fake = Fake(samples("GPU-a", paused), last_over_time=[row(0.4, UUID="GPU-a")])
    assert "somebody profiles" in reason(usage_of(fake))


def test_blank_values_are_no_values() -> None:
    answer = usage_of(Fake(samples("GPU-a", VALUES | {SM: 9223372036854775794.0})))
    assert "no profiling fields" in reason(answer, "sm")


def test_profiling_that_stays_at_0_while_kernels_run_is_no_value() -> None:
    """NVIDIA/DCGM issue 303: a GPU after XID 31, beside one that is well."""
    dead = samples("GPU-b", VALUES | {ENGINE: 0.0, SM: 0.0})
    answer = usage_of(Fake([*samples("GPU-a"), *dead]))
    assert reason(answer) == reason(answer, "sm")
    assert reason(answer).startswith(f"{ENGINE} of GPU-b stays at 0 while kernels run")
    assert answer.values["memory"].value == 0.25


def test_a_percentage_of_millions_is_no_sample() -> None:
    """NVIDIA/DCGM issue 199."""
    series = samples("GPU-a", {UTIL: 90.0, USED: 20000.0, FREE: 60000.0})
    series[0]["values"][3][1] = "808334905"
    engine = usage_of(Fake(series)).values["engine"]
    assert engine.value == pytest.approx(0.9)
    assert engine.samples == 7


def test_a_ratio_ends_at_1() -> None:
    """NVIDIA/DCGM issue 152: SM_ACTIVE of MIG instances."""
    assert usage_of(Fake(samples("GPU-a", VALUES | {SM: 1.4}))).values["sm"].value == 1.0


def test_other_devices_of_nvidia_are_no_gpus() -> None:
    """A pod with a network card, nvidia.com/hostdev, and without a GPU is not missed."""
    fake = Fake(samples("GPU-a"))
    Usage(Prometheus(fake, "")).of_namespace("team-a")
    (question,) = [text for text in fake.requests if "resource_requests" in text]
    assert "nvidia_com_(gpu|gpu_shared|mig_.+)" in question


@pytest.mark.parametrize("label", ["node", "hostname", "Hostname"])
def test_the_node_by_whichever_label(label: str) -> None:
    series = samples("GPU-a")
    for item in series:
        item["metric"][label] = "gpu1"
    assert usage_of(Fake(series)).nodes == ("gpu1",)


def test_a_pod_that_runs_unseen_spoils_the_namespaces_mean() -> None:
    running = [row(1, pod="trainer-0"), row(1, pod="trainer-1")]
    fake = Fake(samples("GPU-a"), **{"count by (pod)": running})
    answer = Usage(Prometheus(fake, "")).of_namespace("team-a")
    assert reason(answer) == "no sample names trainer-1, which runs and asked for GPUs"


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        ({}, "without kube-state-metrics"),
        (
            {"kube_node_info": [row(3)]},
            "kube-state-metrics knows no pod trainer-0 in namespace team-a",
        ),
        ({"kube_node_info": [row(3)], "kube_pod_info": [row(1)]}, "no GPU was asked for"),
        (
            {
                "kube_node_info": [row(3)],
                "kube_pod_info": [row(1)],
                "sum(kube_pod_container": [row(8)],
                "kube_pod_status_phase": [row(1, phase="Pending")],
            },
            "it asked for 8 GPUs, and no sample of the last 10m names it (pods: 1 Pending)",
        ),
    ],
)
def test_why_nothing_is_known(vectors: dict[str, Any], expected: str) -> None:
    assert expected in reason(usage_of(Fake([], **vectors)))


def test_a_gpu_that_nobody_has_seen() -> None:
    fake = Fake([], **{"count(count by (UUID)": [row(16)]})
    answer = Usage(Prometheus(fake, "")).of_gpu("GPU-x")
    assert "has this UUID (GPUs seen now: 16)" in reason(answer)
    assert '{UUID="GPU-x"}' not in fake.requests[-1]


def test_a_gpu_is_followed_from_pod_to_pod() -> None:
    series = [*samples("GPU-a", age=60, pod="before"), *samples("GPU-a", pod="now")]
    answer = Usage(Prometheus(Fake(series), "")).of_gpu("GPU-a")
    assert answer.is_known()
    assert answer.gpus == ("GPU-a",)


class Broken:
    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        raise PrometheusError("connection refused")


def test_a_prometheus_that_does_not_answer_is_a_reason() -> None:
    answer = Usage(Prometheus(Broken(), "")).of_pod("team-a", "trainer-0")
    assert reason(answer) == "Prometheus gives no answer: connection refused"


def test_names_are_quoted() -> None:
    fake = Fake([])
    Usage(Prometheus(fake, "")).of_pod("team-a", 'x"} or vector(1) #')
    assert r'pod="x\"} or vector(1) #"' in fake.requests[1]


def test_unknown_has_a_reason() -> None:
    with pytest.raises(ValueError, match="no reason"):
        Value(None)
