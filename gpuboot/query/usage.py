"""How busy the GPUs of a pod, of a namespace, or one GPU are: for autoscalers and for people.

The answer comes from Prometheus, with the age of its newest sample and where it is from. What is
not known is said to be unknown, with the reason: no number is made up, and "no data" is never 0.

    with connect(kubeconfig, transport) as cluster:
        prometheus = Prometheus(cluster, cluster.service("monitoring", *PROMETHEUS))
        answer = Usage(prometheus).of_pod("team-a", "trainer-0")
        if answer.values["sm"].value is None:
            keep_replicas(answer.values["sm"].reason)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gpuboot.cluster.api import ClusterError
from gpuboot.monitoring.rules.promql import ENGINE, RESOURCES, UTIL
from gpuboot.query.latest_samples import (
    FREE,
    USED,
    Device,
    DeviceSamples,
    Points,
    Value,
    device,
    device_name,
    devices,
    duration,
    merge,
    newest,
    selector,
)
from gpuboot.telemetry.anchor import ANCHORS
from gpuboot.verify.prometheus import Prometheus, PrometheusError, Series

Kind = Literal["pod", "namespace", "gpu"]

SM = "DCGM_FI_PROF_SM_ACTIVE"
METRICS = ("engine", "sm", "memory")
_ALWAYS = ANCHORS[0]  # GB10 has no frame buffer of its own
_FIELDS = (ENGINE, UTIL, SM, USED, FREE)
_NO_PROFILING = (
    "these GPUs have no profiling fields (GeForce, vGPU), or they are not collected "
    "(see docs/metrics.md)"
)


@dataclass(frozen=True)
class Answer:
    """What is known of a pod's, a namespace's or one GPU's load.

    + gpus: UUIDs, with `/` and the instance's number under MIG; nodes: where they are
    + values: `engine` (share of time in which the engine worked), `sm` (share of cycles with work
      on an SM) and `memory` (used share); the mean of all GPUs
    + notes: what a reader should know about the numbers
    """

    kind: Kind
    name: str
    namespace: str
    window_s: float
    gpus: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def is_known(self, metrics: Iterable[str] = METRICS) -> bool:
        """Whether all these metrics have a value."""
        return all(self.values[name].value is not None for name in metrics)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "known": self.is_known()}


class Usage:
    """Asks Prometheus for the load of GPUs.

    + stale_s: a GPU whose newest sample is older is unknown; two scrape intervals
    + window_s: what is averaged over
    + lookback_s: how far back is looked for the reason why nothing is known
    """

    def __init__(
        self,
        prometheus: Prometheus,
        stale_s: float = 30.0,
        window_s: float = 120.0,
        lookback_s: float = 600.0,
    ) -> None:
        self._prometheus = prometheus
        self._stale_s = stale_s
        self._window_s = max(window_s, stale_s)
        self._lookback_s = lookback_s

    def of_pod(self, namespace: str, pod: str) -> Answer:
        """The load of the GPUs that a pod holds."""
        return self.answer("pod", pod, namespace)

    def of_namespace(self, namespace: str) -> Answer:
        """The load of all GPUs that pods of a namespace hold."""
        return self.answer("namespace", namespace, namespace)

    def of_gpu(self, uuid: str) -> Answer:
        """The load of one GPU, whatever pod holds it."""
        return self.answer("gpu", uuid, "")

    def answer(self, kind: Kind, name: str, namespace: str) -> Answer:
        """The load of any of the three. Raises nothing: a silent Prometheus is a reason."""
        matchers = {
            "pod": {"namespace": namespace, "pod": name},
            "namespace": {"namespace": namespace},
            "gpu": {"UUID": name},
        }[kind]
        empty = Answer(kind, name, namespace, self._window_s)
        try:
            return self._answer(empty, matchers)
        except (ClusterError, PrometheusError, KeyError, TypeError, ValueError) as error:
            return unknown(empty, f"Prometheus gives no answer: {error}")

    def _answer(self, empty: Answer, matchers: Mapping[str, str]) -> Answer:
        now = self._prometheus.query("vector(time())")[0].value
        label = selector(matchers)
        fields = "|".join(_FIELDS)
        series_list = self._prometheus.scraped(
            f'{{__name__=~"{fields}",{label}}}[{duration(self._lookback_s)}]'
        )
        held_devices = devices(series_list)
        if empty.kind != "gpu":
            self._drop_released(held_devices, now)
        if not held_devices:
            return unknown(empty, self._why_none(empty, label))
        missing = self._without_samples(empty, series_list) if empty.kind != "gpu" else ""
        shared = any(series.labels.get("vgpu") for series in series_list)
        if shared:
            self._add_used_by_others(held_devices)
        samples = DeviceSamples(held_devices, label, now, self._stale_s, self._window_s)
        values = {
            "engine": self._engine(samples),
            "sm": samples.mean(SM, f"no {SM}: {_NO_PROFILING}"),
            "memory": samples.memory(),
        }
        if dead := samples.dead_profiling():
            for name in ("engine", "sm"):
                values[name] = _withdrawn(values[name], dead)
        if missing:
            values = {name: _withdrawn(value, missing) for name, value in values.items()}
        note = "a shared GPU (time slices or MPS): its numbers are the whole GPU's, whoever uses it"
        return Answer(
            empty.kind,
            empty.name,
            empty.namespace,
            self._window_s,
            tuple(map(device_name, sorted(held_devices))),
            _nodes(series_list, held_devices),
            values,
            (note,) if shared else (),
        )

    def _engine(self, samples: DeviceSamples) -> Value:
        """The engine's activity by the profiling field, by GPU_UTIL where that is long missing."""
        value = samples.mean(ENGINE, f"no {ENGINE}: {_NO_PROFILING}")
        if value.value is not None or samples.has(ENGINE) or not samples.has(UTIL):
            return value
        uuids = "|".join(re.escape(uuid) for uuid, _ in sorted(samples.devices))
        paused = self._prometheus.query(
            f"last_over_time({ENGINE}{{{selector({'UUID': uuids}, '=~')}}}[1h])"
        )
        if paused:
            return Value(None, reason=f"{ENGINE} has paused: somebody profiles the GPU")
        return samples.mean(UTIL, "", scale=0.01)

    def _drop_released(self, held_devices: dict[Device, dict[str, Points]], now: float) -> None:
        """Forget GPUs that were given back: their samples go on without this pod's name."""
        stale = {
            key for key, fields in held_devices.items() if now - newest(fields) > self._stale_s
        }
        if not stale:
            return
        uuids = "|".join(re.escape(uuid) for uuid, _ in sorted(stale))
        newest_samples = self._prometheus.query(
            f"timestamp({_ALWAYS}{{{selector({'UUID': uuids}, '=~')}}})"
        )
        for sample in newest_samples:
            key = device(sample.labels)
            if key in stale and now - sample.value <= self._stale_s:
                held_devices.pop(key, None)

    def _add_used_by_others(self, held_devices: dict[Device, dict[str, Points]]) -> None:
        """The memory that is used of shared GPUs as a whole; a pod's series have its own part."""
        uuids = "|".join(re.escape(uuid) for uuid, _ in sorted(held_devices))
        used = f"{USED}{{{selector({'UUID': uuids}, '=~')}}}[{duration(self._lookback_s)}]"
        for key, fields in devices(self._prometheus.scraped(used)).items():
            if key in held_devices and USED in held_devices[key]:
                merge(held_devices[key][USED], fields[USED])

    def _without_samples(self, empty: Answer, series_list: Sequence[Series]) -> str:
        """Pods that run and asked for GPUs, and that no sample names: their load is missing."""
        named_pods = {series.labels.get("pod", "") for series in series_list}
        label = selector(_object(empty))
        running = self._prometheus.query(
            "count by (pod) (kube_pod_container_resource_requests"
            f"{{{RESOURCES},{label}}} > 0) and on (pod) "
            f'(kube_pod_status_phase{{phase="Running",{label}}} == 1)'
        )
        absent = sorted({sample.labels.get("pod", "") for sample in running} - named_pods)
        return f"no sample names {', '.join(absent)}, which runs and asked for GPUs" * bool(absent)

    def _why_none(self, empty: Answer, label: str) -> str:
        """Why no sample is about this, as far as kube-state-metrics tells."""
        span = duration(self._lookback_s)
        if empty.kind == "gpu":
            gpus = self._prometheus.query(f"count(count by (UUID) ({_ALWAYS}))")
            count = int(gpus[0].value) if gpus else 0
            return f"no sample of the last {span} has this UUID (GPUs seen now: {count})"
        if not self._prometheus.query("count(kube_node_info)"):
            return (
                f"no sample of the last {span} names it, and without kube-state-metrics nobody can "
                "tell whether it asked for a GPU"
            )
        label = selector(_object(empty))
        if not self._prometheus.query(f"count(kube_pod_info{{{label}}})"):
            return f"kube-state-metrics knows no {_describe_subject(empty)}"
        requested = self._prometheus.query(
            f"sum(kube_pod_container_resource_requests{{{RESOURCES},{label}}})"
        )
        if not requested:
            return f"{_describe_subject(empty)}: no GPU was asked for"
        phases = self._prometheus.query(f"count by (phase) (kube_pod_status_phase{{{label}}} == 1)")
        words = ", ".join(f"{int(s.value)} {s.labels.get('phase')}" for s in phases) or "unknown"
        return (
            f"it asked for {int(requested[0].value)} GPUs, and no sample of the last {span} names "
            f"it (pods: {words})"
        )


def _nodes(series_list: Iterable[Series], held_devices: Iterable[Device]) -> tuple[str, ...]:
    """The nodes of these devices, as the scrape or the exporter names them."""
    uuids = {uuid for uuid, _ in held_devices}
    labels = (series.labels for series in series_list if series.labels.get("UUID") in uuids)
    names = {
        # of our scrapes, and the exporter's own: `Hostname` up to 4.8.2
        item.get("node") or item.get("hostname") or item.get("Hostname", "")
        for item in labels
    }
    return tuple(sorted(names - {""}))


def unknown(empty: Answer, reason: str) -> Answer:
    """The answer with no value at all."""
    values = {name: Value(None, reason=reason) for name in METRICS}
    return Answer(empty.kind, empty.name, empty.namespace, empty.window_s, values=values)


def _object(empty: Answer) -> dict[str, str]:
    pod = {"pod": empty.name} if empty.kind == "pod" else {}
    return {"namespace": empty.namespace, **pod}


def _describe_subject(empty: Answer) -> str:
    place = f"namespace {empty.namespace}"
    return f"pod {empty.name} in {place}" if empty.kind == "pod" else f"pod in {place}"


def _withdrawn(value: Value, reason: str) -> Value:
    """The value without its number: a mean of some GPUs is not the mean of all."""
    return Value(None, value.age_s, reason=value.reason or reason)
