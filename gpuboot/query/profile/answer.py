"""The profile of a pod's, a job's, a namespace's or a node's GPUs, asked of Prometheus."""

from __future__ import annotations

import itertools
import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.config.settings.profile import Thresholds, thresholds
from gpuboot.monitoring.rules.promql import ENGINE, RESOURCES, UTIL
from gpuboot.query.latest_samples import Device, duration, selector
from gpuboot.query.profile.classes import HostView
from gpuboot.query.profile.counters import FIELDS, MEAN_S, Samples, collect
from gpuboot.query.profile.window import Span, profile
from gpuboot.verify.prometheus import Prometheus, PrometheusError

Kind = Literal["pod", "job", "namespace", "node", "gpu"]
_STALE = 2.5  # intervals without a sample, after which a device's series have ended
_USUAL_INTERVAL_S = 15.0


@dataclass(frozen=True)
class ProfileQuestion:
    """A question about the profile of GPUs: whose, over which time.

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

    topic: Literal["profile"] = "profile"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> ProfileQuestion:
        """The question with the settings' thresholds and scrape interval where it names none."""
        return replace(
            self,
            own={**settings.profile.thresholds, **self.own},
            interval_s=self.interval_s or seconds(settings.exporter.scrape_interval),
        )

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answer as JSON."""
        try:
            content = _query(prometheus, self, thresholds(self.own))
        except (ClusterError, PrometheusError, KeyError, TypeError, ValueError) as error:
            content = {"reason": f"Prometheus gives no answer: {error}"}
        return self._document(content)

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        return self._document({"reason": reason})

    def _document(self, content: Mapping[str, Any]) -> str:
        identity = {name: getattr(self, name) for name in ("kind", "name", "namespace", "window_s")}
        return json.dumps(
            {**identity, "until": None, "gpus": [], "reason": "", **content}, indent=1
        )


def _query(prometheus: Prometheus, question: ProfileQuestion, limits: Thresholds) -> dict[str, Any]:
    label = _selector(prometheus, question)
    if not label:
        return {
            "reason": f"kube-state-metrics knows no pod of job {question.namespace}/{question.name}"
        }
    now = prometheus.query("vector(time())")[0].value
    names = "|".join(FIELDS)
    back = duration(question.window_s)
    series = prometheus.scraped(f'{{__name__=~"{names}",{label}}}[{back}]')
    devices = collect(series)
    if not devices:
        return {"until": now, "reason": _why_none(prometheus, question, label, back)}
    span = Span(now, question.window_s, question.interval_s or _interval(devices))
    hosts = _hosts(prometheus, devices, back)
    profiles = [
        profile(device, samples, _own_span(span, samples, question), limits, hosts)
        for device, samples in sorted(devices.items(), key=_place)
    ]
    return {"until": now, "gpus": [device_profile.to_json() for device_profile in profiles]}


def _selector(prometheus: Prometheus, question: ProfileQuestion) -> str:
    """What stands between the braces of a PromQL selector; "" where nothing is selected."""
    if question.kind == "job":
        owned = selector({"namespace": question.namespace, "owner_name": question.name})
        pods = prometheus.query(f'count by (pod) (kube_pod_owner{{owner_kind="Job",{owned}}})')
        names = "|".join(sorted(re.escape(sample.labels["pod"]) for sample in pods))
        if not names:
            return ""
        return selector({"namespace": question.namespace}) + "," + selector({"pod": names}, "=~")
    return selector(
        {
            "pod": {"namespace": question.namespace, "pod": question.name},
            "namespace": {"namespace": question.name},
            "node": {"node": question.name},
            "gpu": {"UUID": question.name},
        }[question.kind]
    )


def _own_span(span: Span, samples: Samples, question: ProfileQuestion) -> Span:
    """The part of the window in which a pod held the device: it may have begun or ended within.

    A node's GPU has no such part: where it has no samples, they are missing.
    """
    if question.kind in ("node", "gpu"):
        return span
    times = [time for points in samples.fields.values() for time in points]
    end = max(times)
    held_s = end - min(times) + span.interval_s
    if span.end - end <= _STALE * span.interval_s:
        end = span.end
    return replace(span, end=end, window_s=min(span.window_s, max(held_s, MEAN_S)))


def _interval(devices: Mapping[Device, Samples]) -> float:
    """Seconds between two scrapes, as the samples have it."""
    gaps = []
    for samples in devices.values():
        times = sorted(samples.fields.get(ENGINE) or samples.fields.get(UTIL) or ())
        gaps += [now - before for before, now in itertools.pairwise(times)]
    return statistics.median(gaps) if gaps else _USUAL_INTERVAL_S


def _place(item: tuple[Device, Samples]) -> tuple[str, int, Device]:
    labels = item[1].labels
    gpu = labels.get("gpu", "")
    return labels.get("node", ""), int(gpu) if gpu.isdigit() else 0, item[0]


def _hosts(
    prometheus: Prometheus, devices: Mapping[Device, Samples], back: str
) -> dict[str, HostView]:
    """What the nodes' hosts tell of the window: node-exporter and the kubelets, where they do."""
    cpu = f'avg by (instance) (rate(node_cpu_seconds_total{{mode="iowait"}}[{back}]))'
    node_names = 'label_replace(node_uname_info, "node", "$1", "nodename", "(.+)")'
    joined = f"* on (instance) group_left (node) max by (instance, node) ({node_names})"
    iowait = _by_node(prometheus, f"max by (node) ({cpu} {joined})")
    throttled: dict[str, float] = {}
    if pods := sorted({pod for samples in devices.values() for pod in samples.holders}):
        of_pods = "|".join(re.escape(pod.partition("/")[2]) for pod in pods)
        label = selector({"pod": of_pods}, "=~")
        parts = [
            f"sum by (node, namespace, pod) (rate(container_cpu_cfs_{counter}_total{{{label}}}"
            f"[{back}]))"
            for counter in ("throttled_periods", "periods")
        ]
        throttled = _by_node(prometheus, f"max by (node) ({' / '.join(parts)})")
    return {node: HostView(iowait.get(node), throttled.get(node)) for node in {*iowait, *throttled}}


def _by_node(prometheus: Prometheus, expression: str) -> dict[str, float]:
    return {
        sample.labels.get("node", ""): sample.value
        for sample in prometheus.query(expression)
        if sample.value == sample.value  # no 0 / 0
    }


def _why_none(prometheus: Prometheus, question: ProfileQuestion, label: str, back: str) -> str:
    subject = f"{question.kind} {question.name}"
    if question.kind in ("node", "gpu"):
        return f"no sample of the last {back} is about {subject}"
    requested = prometheus.query(
        f"sum(kube_pod_container_resource_requests{{{RESOURCES},{label}}})"
    )
    if not requested or not requested[0].value:
        return f"no sample of the last {back} names {subject}, and it asked for no GPU"
    return (
        f"no sample of the last {back} names {subject}, which asked for "
        f"{requested[0].value:.0f} GPUs: `gpuboot diagnose` tells why"
    )
