"""The profile of a pod's, a job's, a namespace's or a node's GPUs, asked of Prometheus."""

from __future__ import annotations

import itertools
import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, cast

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.config.settings.profile import Thresholds, thresholds
from gpuboot.kubernetes.api import ClusterError
from gpuboot.telemetry.latest_samples import Device, duration, selector
from gpuboot.telemetry.profile.classes import HostView
from gpuboot.telemetry.profile.counters import ENGINE, FIELDS, MEAN_S, UTIL, Samples, collect
from gpuboot.telemetry.profile.window import Span, profile
from gpuboot.verify.prometheus import JsonReader, Prometheus, PrometheusError

Kind = Literal["pod", "job", "namespace", "node", "gpu"]
LEAST_S, MOST_S = 300.0, 6 * 3600.0
_STALE = 2.5  # intervals without a sample, after which a device's series have ended
_USUAL_INTERVAL_S = 15.0


@dataclass(frozen=True)
class ProfileQuestion:
    """Whose GPUs, over which time.

    + name: of the pod, job, namespace or node, or a GPU's UUID; namespace: of the pod or job
    + window_s: how far back from now
    + own: a site's own thresholds by name
    + interval_s: between two scrapes; 0: as the samples have it
    """

    kind: Kind
    name: str
    namespace: str = ""
    window_s: float = 900.0
    own: Mapping[str, float] = field(default_factory=dict)
    interval_s: float = 0.0

    about: Literal["profile"] = "profile"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> ProfileQuestion:
        """With what the settings know."""
        return replace(
            self,
            own={**settings.profile.thresholds, **self.own},
            interval_s=self.interval_s or seconds(settings.exporter.scrape_interval),
        )

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answer as JSON."""
        try:
            found = _ask(prometheus, self, thresholds(self.own))
        except (ClusterError, PrometheusError, KeyError, TypeError, ValueError) as error:
            found = {"reason": f"Prometheus gives no answer: {error}"}
        return self._document(found)

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        return self._document({"reason": reason})

    def _document(self, found: Mapping[str, Any]) -> str:
        whose = {name: getattr(self, name) for name in ("kind", "name", "namespace", "window_s")}
        return json.dumps({**whose, "until": None, "gpus": [], "reason": "", **found}, indent=1)


def from_dict(values: Mapping[str, Any]) -> ProfileQuestion:
    """The inverse of `ProfileQuestion.to_json`, read."""
    return ProfileQuestion(**cast(dict[str, Any], values))


def _ask(prometheus: Prometheus, asked: ProfileQuestion, limits: Thresholds) -> dict[str, Any]:
    label = _selector(prometheus, asked)
    if not label:
        return {"reason": f"kube-state-metrics knows no pod of job {asked.namespace}/{asked.name}"}
    now = prometheus.query("vector(time())")[0].value
    names = "|".join(FIELDS)
    back = duration(asked.window_s)
    series = prometheus.scraped(f'{{__name__=~"{names}",{label}}}[{back}]')
    found = collect(series)
    if not found:
        return {"until": now, "reason": _why_none(prometheus, asked, label, back)}
    span = Span(now, asked.window_s, asked.interval_s or _interval(found))
    hosts = _hosts(prometheus, found, back)
    profiles = [
        profile(device, samples, _own_span(span, samples, asked), limits, hosts)
        for device, samples in sorted(found.items(), key=_place)
    ]
    return {"until": now, "gpus": [one.to_json() for one in profiles]}


def _selector(prometheus: Prometheus, asked: ProfileQuestion) -> str:
    """What stands between the braces of a PromQL selector; "" where nobody is meant."""
    if asked.kind == "job":
        owned = selector({"namespace": asked.namespace, "owner_name": asked.name})
        pods = prometheus.query(f'count by (pod) (kube_pod_owner{{owner_kind="Job",{owned}}})')
        names = "|".join(sorted(re.escape(sample.labels["pod"]) for sample in pods))
        if not names:
            return ""
        return selector({"namespace": asked.namespace}) + "," + selector({"pod": names}, "=~")
    return selector(
        {
            "pod": {"namespace": asked.namespace, "pod": asked.name},
            "namespace": {"namespace": asked.name},
            "node": {"node": asked.name},
            "gpu": {"UUID": asked.name},
        }[asked.kind]
    )


def _own_span(span: Span, samples: Samples, asked: ProfileQuestion) -> Span:
    """The part of the window in which a pod held the device: it may have begun or ended within.

    A node's GPU has no such part: where it has no samples, they are missing.
    """
    if asked.kind in ("node", "gpu"):
        return span
    times = [time for points in samples.fields.values() for time in points]
    end = max(times)
    held = end - min(times) + span.interval_s
    if span.end - end <= _STALE * span.interval_s:
        end = span.end
    return replace(span, end=end, window_s=min(span.window_s, max(held, MEAN_S)))


def _interval(found: Mapping[Device, Samples]) -> float:
    """Between two scrapes, as the samples have it. Unit: seconds."""
    gaps = []
    for samples in found.values():
        times = sorted(samples.fields.get(ENGINE) or samples.fields.get(UTIL) or ())
        gaps += [now - before for before, now in itertools.pairwise(times)]
    return statistics.median(gaps) if gaps else _USUAL_INTERVAL_S


def _place(item: tuple[Device, Samples]) -> tuple[str, int, Device]:
    labels = item[1].labels
    gpu = labels.get("gpu", "")
    return labels.get("node", ""), int(gpu) if gpu.isdigit() else 0, item[0]


def _hosts(
    prometheus: Prometheus, found: Mapping[Device, Samples], back: str
) -> dict[str, HostView]:
    """What the nodes' hosts tell of the window: node-exporter and the kubelets, where they do."""
    cpu = f'avg by (instance) (rate(node_cpu_seconds_total{{mode="iowait"}}[{back}]))'
    named = 'label_replace(node_uname_info, "node", "$1", "nodename", "(.+)")'
    joined = f"* on (instance) group_left (node) max by (instance, node) ({named})"
    iowait = _by_node(prometheus, f"max by (node) ({cpu} {joined})")
    throttled: dict[str, float] = {}
    if pods := sorted({pod for samples in found.values() for pod in samples.holders}):
        of_pods = "|".join(re.escape(pod.partition("/")[2]) for pod in pods)
        label = selector({"pod": of_pods}, "=~")
        parts = [
            f"sum by (node, namespace, pod) (rate(container_cpu_cfs_{what}_total{{{label}}}"
            f"[{back}]))"
            for what in ("throttled_periods", "periods")
        ]
        throttled = _by_node(prometheus, f"max by (node) ({' / '.join(parts)})")
    return {node: HostView(iowait.get(node), throttled.get(node)) for node in {*iowait, *throttled}}


def _by_node(prometheus: Prometheus, expression: str) -> dict[str, float]:
    return {
        sample.labels.get("node", ""): sample.value
        for sample in prometheus.query(expression)
        if sample.value == sample.value  # no 0 / 0
    }


def _why_none(prometheus: Prometheus, asked: ProfileQuestion, label: str, back: str) -> str:
    whose = f"{asked.kind} {asked.name}"
    if asked.kind in ("node", "gpu"):
        return f"no sample of the last {back} is about {whose}"
    requested = prometheus.query(
        f'sum(kube_pod_container_resource_requests{{resource=~"nvidia_com_.+",{label}}})'
    )
    if not requested or not requested[0].value:
        return f"no sample of the last {back} names {whose}, and it asked for no GPU"
    return (
        f"no sample of the last {back} names {whose}, which asked for "
        f"{requested[0].value:.0f} GPUs: `gpuboot diagnose` tells why"
    )
