"""What Kubernetes, hosts and applications of the made-up cluster say."""

from __future__ import annotations

from collections.abc import Iterator

from tests.populations.model import Population
from tests.populations.offers import allocatable
from tests.populations.pictures.gpus import (
    CORDONED,
    MINUTES,
    NODES,
    PODS,
    UNPROVEN,
    WAITING,
    Series,
    Value,
    Work,
    exporter,
    steps,
)

START = 1_795_500_000 // 14400 * 14400  # unix seconds, at the start of a block of Prometheus
CORDONED_SINCE = 164
UNHEALTHY = {"train2": 1.0}  # GPUs that the device plugin calls unhealthy, once it is cordoned
TEAMS = {"research": "physics", "vision": "robotics", "serving": "product"}
QUOTAS = {"research": 12.0, "vision": 2.0, "notebooks": 4.0}
TOKENS = {"llm-pretrain-0": ("training", 21000.0), "llm-pretrain-1": ("training", 14200.0)}


def series() -> Iterator[Series]:
    """Name, labels, and the value at each minute; None: no sample."""
    for name, of in NODES.items():
        yield from exporter(name, of)
        yield from _node(name, of)
        yield from _host(name, 0.2 + 0.1 * len(name))
    for pod in PODS:
        yield from _pod(pod)
        yield from _application(pod)
    yield "etcd_server_has_leader", {}, steps((0, 1.0))
    yield "gpuboot_etcd_backup_timestamp_seconds", {}, lambda minute: START + 60 * minute
    yield from _waiting()
    yield from _namespaces()


def _node(name: str, of: Population) -> Iterator[Series]:
    node = {"node": name}
    yield "kube_node_info", node, steps((0, 1.0))
    product = of.model.replace(" ", "-")
    labels = {
        **node,
        "label_nvidia_com_gpu_product": product,
        "label_nvidia_com_gpu_present": "true",
    }
    yield "kube_node_labels", labels, steps((0, 1.0))
    cordoned = steps((0, 0.0), (CORDONED_SINCE, 1.0)) if name == CORDONED else steps((0, 0.0))
    yield "kube_node_spec_unschedulable", node, cordoned
    ready = {**node, "condition": "Ready", "status": "true"}
    yield "kube_node_status_condition", ready, steps((0, 1.0))
    if name == UNPROVEN:
        taint = {**node, "key": "gpuboot.io/unproven", "value": "", "effect": "NoSchedule"}
        yield "kube_node_spec_taint", taint, steps((0, None), (90, 1.0))
    for resource, count in allocatable(of).items():
        resource_labels = {**node, "resource": _safe(resource), "unit": "integer"}
        capacity = steps((0, float(count)))
        free_counts = steps(
            (0, float(count)), (CORDONED_SINCE, float(count) - UNHEALTHY.get(name, 0))
        )
        yield "kube_node_status_capacity", resource_labels, capacity
        yield "kube_node_status_allocatable", resource_labels, free_counts


def _host(name: str, load: float) -> Iterator[Series]:
    instance = {"instance": f"{name}:9100", "job": "node-exporter"}
    yield "node_uname_info", {**instance, "nodename": name}, steps((0, 1.0))
    yield "node_memory_MemTotal_bytes", instance, steps((0, 2e12))
    yield "node_memory_MemAvailable_bytes", instance, lambda m: 2e12 * (1 - load) + 1e9 * m
    for cpu in "01":
        for mode, share in (("idle", 1 - load), ("iowait", load / 20), ("user", load * 0.95)):
            busy = {**instance, "cpu": cpu, "mode": mode}
            yield "node_cpu_seconds_total", busy, _counter(60 * share)


def _counter(a_minute: float, since: float = 0) -> Value:
    return lambda minute: (minute - since) * a_minute if minute >= since else None


def _pod(pod: Work) -> Iterator[Series]:
    labels = {"namespace": pod.namespace, "pod": pod.pod}
    of = NODES[pod.node]
    resource = "nvidia.com/gpu"
    if of.instances:
        resource = of.instances[pod.devices[0]][1].resource
    request_labels = {"node": pod.node, "container": "main", "resource": _safe(resource)}
    running = steps((0, None), (pod.since, 1.0), (pod.until, None))
    yield "kube_pod_status_phase", {**labels, "phase": "Running"}, running
    yield "kube_pod_created", labels, steps((0, None), (pod.since, START + pod.since * 60))
    count = float(len(pod.devices))
    requests = steps((0, None), (pod.since, count), (pod.until, None))
    yield "kube_pod_container_resource_requests", {**labels, **request_labels}, requests


def _waiting() -> Iterator[Series]:
    for (namespace, pod), (gpus, minutes) in WAITING.items():
        labels, since = {"namespace": namespace, "pod": pod}, MINUTES - minutes
        request_labels = {"node": "", "container": "main", "resource": "nvidia_com_gpu"}
        waits = steps((0, None), (since, 1.0))
        yield "kube_pod_status_phase", {**labels, "phase": "Pending"}, waits
        yield "kube_pod_created", labels, steps((0, None), (since, START + since * 60))
        requests = steps((0, None), (since, float(gpus)))
        yield "kube_pod_container_resource_requests", {**labels, **request_labels}, requests


def _namespaces() -> Iterator[Series]:
    for namespace, team in TEAMS.items():
        labels = {"namespace": namespace, "label_team": team}
        yield "kube_namespace_labels", labels, steps((0, 1.0))
    for namespace, quota_limit in QUOTAS.items():
        quota = {"namespace": namespace, "resource": "requests.nvidia.com/gpu"}
        used = sum(len(p.devices) for p in PODS if p.namespace == namespace and p.node != "mig1")
        yield "kube_resourcequota", {**quota, "type": "hard"}, steps((0, quota_limit))
        yield "kube_resourcequota", {**quota, "type": "used"}, steps((0, float(used)))


def _application(pod: Work) -> Iterator[Series]:
    labels = {"namespace": pod.namespace, "pod": pod.pod, "instance": pod.pod, "job": "apps"}
    if pod.pod in TOKENS:
        phase, rate = TOKENS[pod.pod]
        yield "ml_tokens_total", {**labels, "phase": phase}, _counter(rate * 60)
    if pod.pod == "segment-7b4":
        yield "ml_samples_total", {**labels, "phase": "training"}, _counter(410 * 60, pod.since)
    if pod.pod == "chat-0":
        yield "vllm:generation_tokens_total", labels, _summed(pod, 1900)
        yield "vllm:prompt_tokens_total", labels, _summed(pod, 5200)
        yield "vllm:num_requests_running", labels, lambda m: round(28 * pod.level(m, 4))
        yield "vllm:num_requests_waiting", labels, lambda m: round(9 * pod.level(m, 4) ** 4)


def _summed(pod: Work, rate: float) -> Value:
    """A counter that rises with the pod's work. + rate: a second, at full load"""
    return lambda minute: sum(
        30 * rate * max(pod.level(half / 2, 4), 0) for half in range(round(minute * 2) + 1)
    )


def _safe(resource: str) -> str:
    """A resource as kube-state-metrics writes it."""
    return "".join(char if char.isalnum() else "_" for char in resource)
