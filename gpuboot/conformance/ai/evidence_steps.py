"""The steps that need nothing but what a gpuboot cluster has: GPUs, their metrics, a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import read_holders
from gpuboot.conformance.ai import accelerator_metrics, access, served, service
from gpuboot.conformance.ai.access import BYSTANDER, Look
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.ai.evidence_site import Site
from gpuboot.verify.isolation_probe import IsolationProbe
from gpuboot.verify.load import load_answers, load_pods
from gpuboot.verify.load.load_pods import CONTAINER, START_S, LoadRequest
from gpuboot.verify.prometheus import Sample

_DEPLOYMENTS = "/apis/apps/v1/deployments"
_LOAD_S = 120
_SCRAPE_S = 180  # for the operator to tell Prometheus of a new PodMonitor, and a first scrape


def what_is_served(site: Site) -> list[Result]:
    """The APIs of the server, and who scales its nodes."""
    items = site.cluster.json(_DEPLOYMENTS)["items"]
    workloads = [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items]
    return [
        served.evaluate_dra(site.get(served.DRA)),
        served.evaluate_node_scaling(workloads),
    ]


def gpu_access(site: Site) -> list[Result]:
    """Pods with a device and without, on each GPU node with a free one."""
    nodes, plan = site.plan()
    expected: list[Look] = []
    manifests = []
    for name, free in plan.pods.items():
        resource, count = access.holders(nodes[name], free)
        group = access.pods(nodes[name], resource, count, site.settings) if count else []
        manifests += group
        expected += _looks(nodes[name], [pod["metadata"]["name"] for pod in group], resource)
    probe = IsolationProbe(site.session, site.settings)
    site.session.create(manifests)
    probe.start({name: nodes[name] for name in plan.pods}, ())
    site.progress(f"{len(manifests)} pods with a device each, on {len(plan.pods)} nodes")
    site.until(lambda: all(_has_ended(site, look) for look in expected), _patience(site))
    looks = [_final(site, look) for look in expected]
    probes = probe.wait({})
    for pod in dict.fromkeys(look.pod for look in expected):
        site.session.delete(pod)
    return [
        access.evaluate_access(probes, looks),
        access.evaluate_driver(looks, nodes),
        access.evaluate_sharing(looks, {name: nodes[name] for name in site.names if name in nodes}),
    ]


def _looks(node: Node, pod_names: list[str], resource: str) -> list[Look]:
    """What the containers of a node's pods are expected to tell."""
    shared = access.is_shared(node, resource)
    silent = "it printed nothing"
    looks = [
        Look(node.name, pod, resource=resource, shared=shared, error=silent) for pod in pod_names
    ]
    return [*looks, *(Look(node.name, pod, BYSTANDER, error=silent) for pod in pod_names[:1])]


def _has_ended(site: Site, look: Look) -> bool:
    """Whether a container has told all that it will."""
    pod = site.session.pods().get(look.pod)
    if pod is None or pod.finished or site.session.issue(pod).failed:
        return True
    return access.END in site.session.log(look.pod, look.container)


def _patience(site: Site) -> float:
    return float(site.settings.verify.timeout_s)


def _final(site: Site, look: Look) -> Look:
    answer = access.parse_log(look, site.session.whole_log(look.pod, look.container))
    pod = site.session.pods().get(look.pod)
    if not answer.error or pod is None:
        return answer
    return replace(answer, error=site.session.issue(pod).error or answer.error)


def metrics_under_load(site: Site) -> list[Result]:
    """Keep one GPU busy, and check that Prometheus shows its utilization meanwhile."""
    if not site.settings.monitoring.enabled:
        return [_without_monitoring("accelerator_metrics")]
    before = _values(site)
    nodes, _ = site.plan()
    request = LoadRequest(kind="compute", seconds=_LOAD_S, gpus=1)
    holders = read_holders(site.cluster)
    plan = load_pods.plan(site.names, nodes, holders, site.settings, request)
    if not plan.gpus:
        reason = "; ".join(f"{node}: {text}" for node, text in plan.left.items())
        return [accelerator_metrics.evaluate(before, {}, "", reason)]
    node = next(iter(plan.gpus))
    begin_by = int(site.cluster.now().timestamp()) + START_S
    manifest = load_pods.pod(nodes[node], 1, request, begin_by, site.settings)
    name = manifest["metadata"]["name"]
    site.session.create([manifest])
    site.progress(f"one GPU of {node} is kept busy for {_LOAD_S} s")
    uuid, during, reason = _watch_load(site, node, name, before)
    site.session.delete(name)
    return [accelerator_metrics.evaluate(before, during, uuid, reason)]


def _without_monitoring(name: str) -> Result:
    remedy = "switch it on, run deploys/site.py"
    return Result(name, "not_run", "monitoring.enabled is off", remedy=remedy)


def _watch_load(
    site: Site, node: str, name: str, before: accelerator_metrics.Values
) -> tuple[str, accelerator_metrics.Values, str]:
    """The GPU that is loaded, what Prometheus says then, and why none is."""

    def loaded_uuid() -> str:
        loads = load_answers.read(node, site.session.log(name, CONTAINER))
        return next((load.uuid for load in loads if load.program and not load.error), "")

    if reason := site.pod_ready(name, START_S):
        return "", {}, reason
    uuid = site.until(loaded_uuid, START_S) or ""
    if not uuid:
        return "", {}, "the load did not begin: " + site.session.whole_log(name, CONTAINER)[-200:]
    latest: Mapping[str, Mapping[str, float]] = {}

    def risen() -> bool:
        nonlocal latest
        latest = _values(site)
        return accelerator_metrics.has_risen(before.get(uuid, {}), latest.get(uuid, {}))

    site.until(risen, _LOAD_S)
    return uuid, latest, ""


def _values(site: Site) -> accelerator_metrics.Values:
    return accelerator_metrics.values(site.prometheus.query(accelerator_metrics.QUERY))


def service_metrics(site: Site) -> list[Result]:
    """Ask a service, then ask Prometheus for the requests that the service counted."""
    if not site.settings.monitoring.enabled:
        return [_without_monitoring("ai_service_metrics")]
    if reason := site.pod_ready(service.POD, _patience(site)):
        return [service.evaluate(None, {}, reason)]
    namespace = site.session.namespace
    base = site.cluster.pod(namespace, service.POD, service.PORT)
    for _ in range(service.REQUESTS):
        site.cluster.get(f"{base}{service.INFER}")
    site.create(f"/apis/monitoring.coreos.com/v1/{site.namespace}/podmonitors", service.monitor())
    site.progress(f"{service.REQUESTS} requests sent to a service; waiting for Prometheus")

    def counted() -> list[Sample]:
        query = f'{service.METRIC}{{namespace="{namespace}"}} >= {service.REQUESTS}'
        return site.prometheus.query(query)

    samples = site.until(counted, _SCRAPE_S) or []
    sample = next(iter(samples), None)
    labels = sample.labels if sample else {}
    return [service.evaluate(sample.value if sample else None, labels, "")]
