"""Why Prometheus has no GPU metrics although the exporter runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from gpuboot.cluster import policies
from gpuboot.cluster.selectors import matches
from gpuboot.config.settings import Settings
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.exporter_causes import exporters
from gpuboot.diagnose.facts import Facts
from gpuboot.diagnose.paths import MONITORS
from gpuboot.monitoring.network_policies import PROMETHEUS, enforcement
from gpuboot.verify.alert_path import stopped_texts
from gpuboot.verify.silences import alert_rules, lasting

_GPU = ("dcgm", "gpu")
_UNANSWERED = ("context deadline exceeded", "i/o timeout")


def _selects(
    facts: Facts, name: str, spec: Mapping[str, Any], monitor: str, labels: Mapping[str, str]
) -> bool:
    """Whether a Prometheus takes a monitor. Without a selector of namespaces: only its own."""
    home, place = name.partition("/")[0], monitor.partition("/")[0]
    spaces = spec.get("serviceMonitorNamespaceSelector")
    near = (
        home == place
        if spaces is None
        else matches(spaces, facts.cluster.namespaces.get(place, {}))
    )
    return near and matches(spec.get("serviceMonitorSelector"), labels)


def not_selected(facts: Facts) -> Iterator[Sighting]:
    prometheuses = facts.cluster.prometheuses
    for monitor, labels in facts.cluster.monitors:
        if not prometheuses or any(
            _selects(facts, name, spec, monitor, labels) for name, spec in prometheuses
        ):
            continue
        words = ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "none"
        wants = [
            f"Prometheus {name} selects {_words(spec.get('serviceMonitorSelector'))}"
            for name, spec in prometheuses
        ]
        is_gpu_monitor = any(word in monitor for word in _GPU)
        yield Sighting(
            evidence=(f"ServiceMonitor {monitor} has the labels {words}", *wants),
            confidence=Confidence.CERTAIN if is_gpu_monitor else Confidence.POSSIBLE,
            values={
                "space": monitor.partition("/")[0],
                "monitor": monitor.partition("/")[2],
                "label": _missing_label(prometheuses),
            },
        )


def _words(selector: Mapping[str, Any] | None) -> str:
    if selector is None:
        return "none"
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [
        f"{expression['key']} {expression['operator']}"
        for expression in selector.get("matchExpressions") or ()
    ]
    return ", ".join(terms) or "all"


def _missing_label(prometheuses: tuple[tuple[str, Mapping[str, Any]], ...]) -> str:
    """The label that a monitor lacks, as `kubectl label` takes it."""
    for _, spec in prometheuses:
        for key, value in (
            (spec.get("serviceMonitorSelector") or {}).get("matchLabels") or {}
        ).items():
            return f"{key}={value}"
    return "release=RELEASE"


def monitor_missing(facts: Facts) -> Iterator[Sighting]:
    """Exporters run, and nothing tells Prometheus of them."""
    running = exporters(facts)
    if not running or not facts.cluster.prometheuses or MONITORS in facts.cluster.errors:
        return
    spaces = {pod.namespace for pod in running}
    if any(
        "dcgm" in name or "exporter" in name.partition("/")[2]
        for name, _ in facts.cluster.monitors
        if name.partition("/")[0] in spaces or "dcgm" in name
    ):
        return
    evidence = (
        f"{len(running)} exporters run in {', '.join(sorted(spaces))}",
        "no ServiceMonitor of dcgm-exporter exists",
    )
    yield Sighting(evidence=evidence)


def target_down(facts: Facts) -> Iterator[Sighting]:
    """Targets that Prometheus does not get; of one job a line each, at most three."""
    jobs: dict[str, list[str]] = {}
    for target in facts.cluster.targets or ():
        if target["health"] == "down":
            job = target["labels"].get("job", target["pool"])
            jobs.setdefault(job, []).append(f"{job}: {target['url']}: {target['error'][:200]}")
    for lines in jobs.values():
        yield Sighting(evidence=tuple(lines[:3]), confidence=Confidence.LIKELY)


def scrape_denied(facts: Facts) -> Iterator[Sighting]:
    """Targets that do not answer, are well, and that an enforced NetworkPolicy keeps apart."""
    cluster = facts.cluster
    sets = [item.name for item in cluster.workloads if item.kind == "DaemonSet"]
    ready = [pod for pod in cluster.pods if pod.ready and pod.address]
    scraper = next((pod for pod in ready if PROMETHEUS.items() <= pod.labels.items()), None)
    # flannel alone ignores policies
    if not (enforced := enforcement(sets)).startswith("enforced") or scraper is None:
        return
    space = cluster.namespaces.get(scraper.namespace, {})
    # what stands in its host's network no policy reaches
    hosts = " ".join(node.address for node in cluster.nodes).split()
    pods = {pod.address: pod for pod in ready if pod.address not in hosts}
    targets = [(urlsplit(item["url"]), item) for item in cluster.targets or ()]
    targeted = [(pods[url.hostname], url, item) for url, item in targets if url.hostname in pods]
    # another pod of the node answers: neither pod network nor packet filter is it
    sound_nodes = {pod.node for pod, _, item in targeted if item["health"] == "up"}
    for pod, url, item in targeted:
        names = policies.denying(cluster.policies, pod, url.port or 80, scraper, space)
        if names and any(text in item["error"] for text in _UNANSWERED):
            text = f"{item['url']}: {item['error'][:120]}, and {pod.key} is ready"
            rule = f"NetworkPolicy {', '.join(names)} admits no pod of {scraper.namespace}"
            yield Sighting(
                node=pod.node,
                pod=pod.key,
                evidence=(text, f"{rule} ({enforced})"),
                confidence=Confidence.CERTAIN if pod.node in sound_nodes else Confidence.LIKELY,
                values={"policy": names[0].partition("/")[2]},
            )


def prometheus_down(facts: Facts) -> Iterator[Sighting]:
    error = facts.cluster.errors.get("targets", "")
    if facts.cluster.error or not facts.cluster.prometheuses or not error:
        return
    pods = [
        pod
        for pod in facts.cluster.pods
        if pod.labels.get("app.kubernetes.io/name") == "prometheus"
    ]
    # it answers the kubelet's probe: the way to it, or its reader, may be what is slow
    confidence = Confidence.LIKELY if any(pod.ready for pod in pods) else Confidence.CERTAIN
    evidence = [f"{pod.key} is {'ready' if pod.ready else 'not ready'}" for pod in pods]
    name = facts.cluster.prometheuses[0][0]
    yield Sighting(
        evidence=(error[:300], *(evidence or [f"Prometheus {name} has no pod"])),
        confidence=confidence,
        values={"space": name.partition("/")[0]},
    )


def stopped(facts: Facts) -> Iterator[Sighting]:
    """Objects that the Prometheus operator does not keep up, as somebody has set it."""
    kinds = {"Prometheus": facts.cluster.prometheuses, "Alertmanager": facts.cluster.alertmanagers}
    plurals = {
        "Prometheus": "prometheuses.monitoring.coreos.com",
        "Alertmanager": "alertmanagers.monitoring.coreos.com",
    }
    for kind, objects in kinds.items():
        for key, spec in objects:
            namespace, _, name = key.partition("/")
            if not (texts := stopped_texts(f"{kind} {key}", spec)):
                continue
            yield Sighting(
                evidence=tuple(texts),
                explains=("prometheus-down",) if spec.get("replicas") == 0 else (),
                values={"space": namespace, "object": f"{plurals[kind]} {name}"},
            )


def silenced(facts: Facts) -> Iterator[Sighting]:
    """Silences over all alerts of gpuboot, and those over some that are not to end soon."""
    cluster = facts.cluster
    if not cluster.silences:
        return
    rules = alert_rules(Settings(), ())
    space = cluster.alertmanagers[0][0].partition("/")[0] if cluster.alertmanagers else "monitoring"
    for silence in cluster.silences:
        for decision in lasting([silence], rules, facts.site, cluster.now):
            yield Sighting(evidence=(decision.what,), values={"space": space, "id": silence.id})


TABLE = (
    Cause(
        id="service-monitor-not-selected",
        meaning="a ServiceMonitor lacks the labels that Prometheus selects, so nobody scrapes it",
        find=not_selected,
        remedy="label it as Prometheus' selector says; deploys/site.py puts ours back",
        command="kubectl -n {space} label --overwrite servicemonitor {monitor} {label}",
    ),
    Cause(
        id="service-monitor-missing",
        meaning="the exporter runs, and no ServiceMonitor tells Prometheus of it",
        find=monitor_missing,
        remedy="run deploys/site.py: the operator skips it where the CRD came later",
        command="kubectl get crd servicemonitors.monitoring.coreos.com; "
        "kubectl get servicemonitors -A",
    ),
    Cause(
        id="prometheus-target-down",
        meaning="Prometheus does not get the metrics of a target",
        find=target_down,
        remedy="read the error of the scrape. 401 or 403: rights of Prometheus' ServiceAccount, "
        "which a run of deploys/site.py puts back; refused: the program listens elsewhere, or "
        "not; time over: a NetworkPolicy or the packet filter; a limit: more series than its "
        "monitor allows",
        command="kubectl get --raw /api/v1/namespaces/monitoring/services/"
        "prometheus-operated:9090/proxy/api/v1/targets?state=active",
    ),
    Cause(
        id="scrape-denied",
        meaning="a NetworkPolicy keeps Prometheus from a target that is well",
        find=scrape_denied,
        remedy="let Prometheus' pods in by a rule of the policy (namespaceSelector of their "
        "namespace, the port of the target); gpuboot's own deploys/site.py puts back",
        command="kubectl -n {namespace} describe networkpolicy {policy}",
        explains=("prometheus-target-down", "service-monitor-missing"),
    ),
    Cause(
        id="monitoring-stopped",
        meaning="somebody has paused Prometheus or Alertmanager, or given it no pods: the operator "
        "applies no change to it, or nothing is measured",
        find=stopped,
        remedy="whoever set this may know why; deploys/site.py puts it back as the settings say",
        command="kubectl -n {space} get {object} -o jsonpath='{{.spec.paused}},{{.spec.replicas}}'",
        explains=("prometheus-down",),
    ),
    Cause(
        id="alerts-silenced",
        meaning="a silence in Alertmanager holds back all alerts, or some or a node's for good",
        find=silenced,
        remedy="ask its author, then end it",
        command="kubectl delete --raw /api/v1/namespaces/{space}/services/"
        "alertmanager-operated:9093/proxy/api/v2/silence/{id}",
    ),
    Cause(
        id="prometheus-down",
        meaning="Prometheus does not answer: nothing is collected, and no alert can fire",
        find=prometheus_down,
        remedy="look at its pod: its disk, its memory, the operator that makes it",
        command="kubectl -n {space} get pods; "
        "kubectl -n {space} logs -l app.kubernetes.io/name=prometheus --tail=20",
    ),
)
