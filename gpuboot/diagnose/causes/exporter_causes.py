"""Why the exporter's metrics are missing, wrong, or not those that were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuboot.cluster.pods import Pod, Termination
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.facts import RECENT_S, Facts

_LABELS = (("app", "nvidia-dcgm-exporter"), ("app.kubernetes.io/name", "dcgm-exporter"))
_UNKNOWN = re.compile(
    r"[Cc]ould not find DCGM field|[Uu]nknown (?:DCGM )?field|malformed CSV|record on line \d+|"
    r"wrong number of fields|could not find Prometheus metric type"
)
_DUPLICATE = re.compile(
    r"is not unique|collected before with the same name and label values|[Dd]uplicate Key|"
    r"duplicate sample|[Dd]uplicate metrics"
)
_OOM = "OOMKilled"
# runc, libcontainer/process_linux.go: the limit is less than a container takes to start
_NO_START = "container init was OOM-killed"
_SHARED = "nvidia.com/gpu.sharing-strategy"
_VIRTUAL = "KUBERNETES_VIRTUAL_GPUS"


def exporters(facts: Facts) -> list[Pod]:
    """The exporters' pods that are there to stay."""
    return [pod for pod in facts.cluster.pods if is_exporter(pod) and not pod.going]


def is_exporter(pod: Pod) -> bool:
    """Whether it is dcgm-exporter, by either chart's labels."""
    return any(pod.labels.get(key) == value for key, value in _LABELS)


def oom(facts: Facts) -> Iterator[Sighting]:
    """Killed while it ran, or, with still less, while runc started it."""
    for pod in exporters(facts):
        for container in pod.containers:
            termination = container.termination or Termination()
            ago = facts.cluster.now - termination.at
            messages = () if container.ready else (container.message, termination.message)
            symptoms = [text for text in messages if _NO_START in text]
            if termination.reason == _OOM and ago < RECENT_S:
                symptoms = [f"{_OOM} {ago:.0f} s ago"]
            if symptoms:
                # it may be well since, or be killed again as soon as it has grown
                confidence = Confidence.LIKELY if container.ready else Confidence.CERTAIN
                evidence = (f"container {container.name}: {symptoms[-1]}",)
                yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


def probe_killed(facts: Facts) -> Iterator[Sighting]:
    for pod in exporters(facts):
        events = [
            item
            for item in facts.cluster.events_of(pod.key, "Unhealthy")
            if "Liveness" in item.message
        ]
        killed = [
            item
            for item in pod.containers
            if item.restarts
            and item.termination
            and facts.cluster.ended_lately(item)
            and item.termination.reason != _OOM
        ]
        if events and killed:
            evidence = (
                events[-1].message,
                f"container {killed[0].name}: started {killed[0].restarts + 1} times",
            )
            late = facts.cluster.present(events[-1].at) or not killed[0].ready
            confidence = Confidence.CERTAIN if late else Confidence.LIKELY
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


def unknown_counter(facts: Facts) -> Iterator[Sighting]:
    for pod in exporters(facts):
        lines = [line for line in facts.cluster.log(pod, "") if _UNKNOWN.search(line)]
        if lines and not pod.ready:
            yield Sighting(node=pod.node, pod=pod.key, evidence=(lines[-1],))


def duplicate_labels(facts: Facts) -> Iterator[Sighting]:
    """A page that Prometheus refuses, or an exporter that does not start."""
    for pod in exporters(facts):
        lines = [line for line in facts.cluster.log(pod, "") if _DUPLICATE.search(line)]
        if lines and not pod.ready:
            yield Sighting(node=pod.node, pod=pod.key, evidence=(lines[-1],))
    for target in facts.cluster.targets or ():
        if target["health"] == "down" and _DUPLICATE.search(target["error"]):
            labels = target["labels"]
            yield Sighting(
                node=labels.get("node", ""),
                confidence=Confidence.CERTAIN,
                evidence=(f"{labels.get('job', '')}: {target['error']}",),
            )


def stale_collectors(facts: Facts) -> Iterator[Sighting]:
    """The ConfigMap has changed since the exporter started: a subPath mount never shows that."""
    digests = set(facts.cluster.collectors.values())
    rolling = any(
        workload.rolling for workload in facts.cluster.workloads if "dcgm-exporter" in workload.name
    )
    for pod in exporters(facts):
        if pod.stamp and digests and pod.stamp not in digests:
            evidence = (
                "it started with other collectors than any ConfigMap has now",
                f"annotation {pod.stamp[:20]}… is no digest of {', '.join(_maps(facts))}",
            )
            # a rollout replaces it in a moment
            confidence = Confidence.LIKELY if rolling else Confidence.CERTAIN
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


def _maps(facts: Facts) -> list[str]:
    return sorted({key.rpartition("/")[0] for key in facts.cluster.collectors})


def shared_attribution(facts: Facts) -> Iterator[Sighting]:
    """Time slices have no series of their own unless the exporter is told so."""
    shared = [
        item
        for item in facts.cluster.nodes
        if item.labels.get(_SHARED) == "time-slicing" or item.replicas > 1
    ]
    sets = [
        item
        for item in facts.cluster.workloads
        if item.kind == "DaemonSet" and item.name.endswith("dcgm-exporter")
    ]
    if not sets or any(_VIRTUAL in item.env for item in sets):
        return
    for node in shared:
        evidence = (
            f"{node.name} shares each GPU among {node.labels.get('nvidia.com/gpu.replicas')} pods",
            f"DaemonSet {sets[0].key} has no {_VIRTUAL}",
        )
        yield Sighting(node=node.name, evidence=evidence)


_POD = "kubectl -n {namespace} logs {name} --previous --tail=20"

TABLE = (
    Cause(
        id="exporter-oom",
        meaning="the exporter was killed for memory",
        find=oom,
        remedy="raise its memory limit (`exporter.resources`); many fields and pods cost memory",
        command="kubectl -n {namespace} get pod {name} "
        "-o jsonpath='{{.spec.containers[*].resources}}'",
        explains=("pod-crash-loop", "prometheus-target-down", "exporter-probe-killed"),
    ),
    Cause(
        id="exporter-probe-killed",
        meaning="the kubelet kills the exporter, which does not answer its liveness probe in time",
        find=probe_killed,
        remedy="give the probe more time, or the exporter more CPU; look for a GPU that hangs",
        command=_POD,
        explains=("pod-crash-loop", "prometheus-target-down"),
    ),
    Cause(
        id="exporter-unknown-counter",
        meaning="the exporter does not start: its collectors file names a field that it does not "
        "know",
        find=unknown_counter,
        remedy="take the field out of `exporter.counters`; docs/metrics.md has those there are",
        command=_POD,
        explains=("pod-crash-loop", "prometheus-target-down"),
    ),
    Cause(
        id="exporter-duplicate-labels",
        meaning="the exporter's series are there twice, or carry a label twice",
        find=duplicate_labels,
        remedy="name each field once, and let no pod label shadow a label of the exporter",
        command="kubectl get --raw /api/v1/namespaces/gpu-operator/services/nvidia-dcgm-exporter:"
        "9400/proxy/metrics | sort | uniq -d | head",
        explains=("prometheus-target-down", "pod-crash-loop"),
    ),
    Cause(
        id="exporter-stale-collectors",
        meaning="the exporter still collects what an older ConfigMap named",
        find=stale_collectors,
        remedy="start its pods anew: a mounted subPath is never refreshed",
        command="kubectl -n {namespace} delete pod {name}",
    ),
    Cause(
        id="time-slicing-attribution",
        meaning="GPUs are shared by time slicing, and their metrics name one pod of several",
        find=shared_attribution,
        remedy="set KUBERNETES_VIRTUAL_GPUS for the exporter; then never sum over pods",
        command="kubectl -n gpu-operator get daemonset nvidia-dcgm-exporter "
        "-o jsonpath='{{.spec.template.spec.containers[0].env}}'",
    ),
)
