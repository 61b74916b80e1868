"""The steps that need what a site may not have: Kueue, a Gateway, metrics for autoscalers."""

from __future__ import annotations

from typing import Any

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.lookup import find_json
from gpuboot.cluster.objects import parse_conditions
from gpuboot.conformance.ai import gateway, kueue, pod_scaling, service
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.ai.evidence_site import Site
from gpuboot.conformance.ai.service import LABELS
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.load.load_pods import START_S

SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
_JOB_S = 180
_PENDING_S = 20  # for which a job without room must have no pod
_SCALE_S = 600
_METRIC_S = 180  # for a scrape, the rule, and the adapter's look at both


def gang_and_controller(site: Site) -> list[Result]:
    """A queue of Kueue: good and bad, with room and without."""
    api = kueue_api(site.get(kueue.GROUP))
    if not api:
        names = ("gang_scheduling", "robust_controller")
        return [
            Result(name, "not_run", "Kueue is not installed", remedy=kueue.REMEDY) for name in names
        ]
    resource, amount = _gang_resource(site)
    denial, queue = _denial(site, api), site.session.namespace
    try:
        site.create(f"{api}/resourceflavors", kueue.flavor(api, queue))
        quota = str(kueue.PODS) if resource == GPU_RESOURCE else f"{kueue.PODS * 100}m"
        site.create(f"{api}/clusterqueues", kueue.cluster_queue(api, queue, resource, quota))
        site.create(f"{api}/{site.namespace}/localqueues", kueue.local_queue(api, queue))
    except ClusterError as error:
        return [
            kueue.evaluate_controller(denial, str(error), ()),
            Result("gang_scheduling", "not_run", f"no queue: {error}", remedy=kueue.REMEDY),
        ]
    active = site.until(lambda: _is_active(site.get(f"{api}/clusterqueues/{queue}")), _JOB_S)
    reason = "" if active else f"the ClusterQueue is not active after {_JOB_S} s"
    lines = [f"ClusterQueue {queue}: {'active' if active else reason}"]
    controller = kueue.evaluate_controller(denial, reason, lines)
    return [controller, _gang(site, resource, amount)]


def kueue_api(group: Any) -> str:
    """The path of Kueue's API in the version that the server prefers; "" without Kueue."""
    return f"/apis/{group['preferredVersion']['groupVersion']}" if group else ""


def _gang_resource(site: Site) -> tuple[str, str]:
    """What the pods ask for: GPUs, where so many are free that are whole and nobody's."""
    _, plan = site.plan()
    free = sum(resources.get(GPU_RESOURCE, 0) for resources in plan.pods.values())
    return (GPU_RESOURCE, "1") if free >= kueue.PODS else ("cpu", "100m")


def _denial(site: Site, api: str) -> str:
    """What the server says to a queue that makes no sense; "" where it takes it."""
    try:
        site.create(f"{api}/clusterqueues", kueue.bad_queue(api, site.session.namespace))
    except ClusterError as error:
        return str(error)
    return ""


def _is_active(item: Any) -> bool:
    conditions = parse_conditions(item or {})
    return "Active" in conditions and conditions["Active"].status == "True"


def _gang(site: Site, resource: str, amount: str) -> Result:
    jobs, queue = f"/apis/batch/v1/{site.namespace}/jobs", site.session.namespace
    amounts = {resource: amount}
    site.create(jobs, kueue.job(kueue.FITS, queue, kueue.PODS, site.image, amounts))
    succeeded = site.until(lambda: _succeeded(site, jobs) == kueue.PODS, _JOB_S)
    site.create(jobs, kueue.job(kueue.TOO_LARGE, queue, kueue.PODS + 1, site.image, amounts))
    site.progress(f"a job without room waits for {_PENDING_S} s")

    def partial() -> int:
        names = site.session.pods()
        return sum(name.startswith(kueue.TOO_LARGE) for name in names)

    started = site.until(partial, _PENDING_S) or 0
    count = kueue.PODS if succeeded else _succeeded(site, jobs)
    return kueue.evaluate_gang(count, started, resource, ())


def _succeeded(site: Site, jobs: str) -> int:
    return int((site.get(f"{jobs}/{kueue.FITS}") or {}).get("status", {}).get("succeeded", 0))


def inference(site: Site) -> list[Result]:
    """Requests through a Gateway of the class that the site has."""
    classes = (site.get(f"{gateway.API}/gatewayclasses") or {}).get("items", ())
    name = gateway.accepted_class(classes)
    if not name:
        reason = "no controller has accepted a GatewayClass"
        return [Result("ai_inference", "not_run", reason, remedy=gateway.REMEDY)]
    site.session.create([service.pod(site.image, backend) for backend in gateway.BACKENDS])
    for backend in gateway.BACKENDS:
        site.create(f"/api/v1/{site.namespace}/services", gateway.backend_service(backend))
    site.create(f"{gateway.API}/{site.namespace}/gateways", gateway.gateway(name))
    site.create(f"{gateway.API}/{site.namespace}/httproutes", gateway.route())
    for backend in gateway.BACKENDS:
        if reason := site.pod_ready(backend, START_S):
            return [Result("ai_inference", "not_run", reason, remedy="mend that, then run again")]
    path = f"{gateway.API}/{site.namespace}/gateways/{gateway.GATEWAY}"
    address = site.until(lambda: gateway.address(site.get(path) or {}), _JOB_S)
    if not address:
        reason = f"the Gateway of class {name} got no address in {_JOB_S} s"
        return [Result("ai_inference", "not_run", reason, remedy=gateway.REMEDY)]
    client = gateway.client(site.image, address)
    site.session.create([client])
    pod = client["metadata"]["name"]
    site.until(lambda: gateway.END in site.session.log(pod, pod), _JOB_S * 2)
    return [gateway.evaluate(name, site.session.whole_log(pod, pod))]


def scaling(site: Site) -> list[Result]:
    """A Deployment whose pods keep a GPU busy at first, under an HPA on GPU load."""
    if reason := _scale(site):
        remedy = pod_scaling.REMEDY if "metrics" in reason else "free a GPU, then run again"
        return [Result("pod_autoscaling", "not_run", reason, remedy=remedy)]
    site.progress(f"a Deployment under load is scaled, within {2 * _SCALE_S / 60:.0f} min")
    counts: list[int] = []

    def ready_count() -> int:
        pods = site.session.pods().values()
        counts.append(sum(pod.ready for pod in pods if pod.labels.get("app") == pod_scaling.NAME))
        return counts[-1]

    if site.until(lambda: ready_count() >= pod_scaling.REPLICAS, _SCALE_S):
        site.until(lambda: ready_count() < pod_scaling.REPLICAS, _SCALE_S)
    return [pod_scaling.evaluate(counts)]


def _scale(site: Site) -> str:
    """Make the Deployment and its autoscaler; why that cannot be, or "".

    An adapter serves a metric that some pod has: GPU load, as soon as one holds a GPU.
    """
    if site.get(pod_scaling.API) is None:
        return "no API of custom metrics is served"
    nodes, plan = site.plan()
    free = {name: count for name, item in plan.pods.items() if (count := item.get(GPU_RESOURCE, 0))}
    if sum(free.values()) < pod_scaling.REPLICAS:
        return f"{sum(free.values())} GPUs are free, and it takes {pod_scaling.REPLICAS}"
    begin_by = int(site.cluster.now().timestamp()) + 2 * START_S
    item = pod_scaling.deployment(nodes[next(iter(free))], begin_by, site.settings)
    site.create(f"/apis/apps/v1/{site.namespace}/deployments", item)
    if not site.until(lambda: pod_scaling.is_served(site.get(pod_scaling.API)), _METRIC_S):
        return f"the API of custom metrics does not serve GPU load, {_METRIC_S} s after a pod began"
    path = f"/apis/autoscaling/v2/{site.namespace}/horizontalpodautoscalers"
    site.create(path, pod_scaling.autoscaler(site.session.namespace))
    return ""


def remove_cluster_objects(cluster: Cluster) -> None:
    """Delete what no namespace holds, also of a command that was killed. Raises `ClusterError`."""
    api = kueue_api(find_json(cluster, kueue.GROUP))
    for kind in kueue.KINDS if api else ():
        cluster.send("DELETE", f"{api}/{kind}?labelSelector={SELECTOR}", missing_ok=True)
