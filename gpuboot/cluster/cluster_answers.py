"""The state of a cluster, out of what its API server answers."""

from __future__ import annotations

import json
from collections.abc import Iterable

import yaml

from gpuboot.cluster import gate
from gpuboot.cluster.api_answers import Answers, Json, parse_answers
from gpuboot.cluster.cluster_state import ClusterState, NodeStatus, Workload
from gpuboot.cluster.kubeadm import immutable_fields
from gpuboot.cluster.manifests import DIGEST
from gpuboot.cluster.node_reports import LEASES, last_report
from gpuboot.cluster.operands import Operand
from gpuboot.cluster.terminating import terminating

VERSION = "/version"
KUBEADM = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
FLANNEL = "/api/v1/namespaces/kube-flannel/configmaps/kube-flannel-cfg"
POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
SERVICES = "/api/v1/services"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CONTROL_PLANE = "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
WORKLOADS = {
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
}
PATHS = (
    *(VERSION, KUBEADM, FLANNEL, POLICIES, NODES, LEASES),
    *(NAMESPACES, SERVICES, CLASSES, RUNTIMES, CONTROL_PLANE),
    *WORKLOADS.values(),
)
PODS = "/api/v1/pods"
DNS_PODS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"

# somebody may have deleted them; a run makes them again
_OPTIONAL = (KUBEADM, FLANNEL, POLICIES)
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_OPERANDS = (
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
    "nvidia-dcgm-exporter",
    "nvidia-operator-validator",
)


def parse_cluster(lines: Iterable[str]) -> ClusterState:
    """What the fact of `PATHS` printed. Raises `FactOutputError`."""
    answers = parse_answers(lines, PATHS, _OPTIONAL)
    if answers.error:
        return ClusterState(error=answers.error)
    kubeadm = answers.documents.get(KUBEADM, {"metadata": {}})
    record = yaml.safe_load(kubeadm.get("data", {}).get("ClusterConfiguration", "")) or {}
    policies = [item.get("status", {}).get("state", "") for item in answers.items(POLICIES)]
    daemonsets = answers.items(WORKLOADS["DaemonSet"])
    leases = {_name(item): item for item in answers.items(LEASES)}
    return ClusterState(
        server=answers.documents[VERSION]["gitVersion"].removeprefix("v"),
        api_servers={
            node: tag.removeprefix("v")
            for node, tag in _tags(answers.items(CONTROL_PLANE), "kube-apiserver").items()
        },
        etcd=_tags(answers.items(CONTROL_PLANE), "etcd"),
        coredns=_coredns(answers.items(WORKLOADS["Deployment"])),
        config=_annotations(kubeadm).get(DIGEST, ""),
        recorded=str(record.get("kubernetesVersion", "")).removeprefix("v"),
        immutable=immutable_fields(record) if record else {},
        clock=answers.clock,
        nodes=tuple(_node(item, leases.get(_name(item), {})) for item in answers.items(NODES)),
        workloads=tuple(
            workload(kind, item) for kind, path in WORKLOADS.items() for item in answers.items(path)
        ),
        namespaces={_name(item): _labels(item) for item in answers.items(NAMESPACES)},
        terminating=terminating(answers.items(NAMESPACES)),
        policy=" ".join(policies),
        operands=tuple(_operand(item) for item in daemonsets if _name(item) in _OPERANDS),
        classes={
            _name(item): _annotations(item).get(_DEFAULT_CLASS) == "true"
            for item in answers.items(CLASSES)
        },
        runtimes={_name(item): item["handler"] for item in answers.items(RUNTIMES)},
        flannel_backend=_flannel_backend(answers),
        node_ports=_node_ports(answers.items(SERVICES)),
    )


def parse_dns_nodes(lines: Iterable[str]) -> tuple[str, ...]:
    """Node of each pod of CoreDNS that is there to stay. Nothing where there is no answer."""
    return tuple(
        item["spec"].get("nodeName", "")
        for item in parse_answers(lines, [DNS_PODS]).items(DNS_PODS)
        if "deletionTimestamp" not in item["metadata"]
    )


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _labels(item: Json) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def _annotations(item: Json) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def _node(item: Json, lease: Json) -> NodeStatus:
    spec, status = item.get("spec", {}), item.get("status", {})
    conditions = {entry["type"]: entry for entry in status.get("conditions", ())}
    ready = conditions.get("Ready", {})
    addresses = [
        entry["address"] for entry in status.get("addresses", ()) if entry["type"] == "InternalIP"
    ]
    return NodeStatus(
        name=_name(item),
        address=" ".join(addresses),
        kubelet=status.get("nodeInfo", {}).get("kubeletVersion", "").removeprefix("v"),
        ready=ready.get("status") == "True",
        message=ready.get("message", ""),
        reported=last_report(lease, item),
        allocatable=status.get("allocatable", {}),
        labels=_labels(item),
        annotations=_annotations(item),
        taints=tuple(f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints", ())),
        pod_cidrs=tuple(spec.get("podCIDRs", ())),
        gate=gate.parse(item),
    )


def workload(kind: str, item: Json) -> Workload:
    """A DaemonSet, Deployment or StatefulSet of the API."""
    meta, status = item["metadata"], item.get("status", {})
    if kind == "DaemonSet":
        desired = status.get("desiredNumberScheduled", 0)
        missing = desired - status.get("currentNumberScheduled", desired)
        ready = min(status.get("updatedNumberScheduled", 0), status.get("numberReady", 0))
    else:
        desired = item.get("spec", {}).get("replicas", 1)
        updated = status.get("updatedReplicas", 0)
        # while old pods run beside new ones, as many of the ready ones may be old
        old = max(status.get("replicas", updated) - updated, 0)
        ready = min(updated, max(status.get("readyReplicas", 0) - old, 0))
        missing = desired - updated
    return Workload(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        desired=desired,
        ready=ready,
        observed=status.get("observedGeneration", 0) >= meta.get("generation", 0),
        digest=_annotations(item).get(DIGEST, ""),
        missing=max(missing, 0),
        refusal=next(
            (
                entry.get("message", "")
                for entry in status.get("conditions", ())
                if entry["type"] == "ReplicaFailure" and entry["status"] == "True"
            ),
            "",
        ),
    )


def _operand(item: Json) -> Operand:
    chart = _labels(item).get("helm.sh/chart", "")
    return Operand(item["metadata"]["namespace"], _name(item), chart, item["spec"]["template"])


def _tags(pods: Iterable[Json], component: str) -> dict[str, str]:
    """Node -> tag of the image of a static pod that kubeadm made there."""
    return {
        item["spec"]["nodeName"]: _tag(item["spec"]["containers"][0]["image"])
        for item in pods
        if _labels(item).get("component") == component
    }


def _coredns(deployments: Iterable[Json]) -> str:
    for item in deployments:
        if (item["metadata"].get("namespace"), _name(item)) == ("kube-system", "coredns"):
            containers = item["spec"].get("template", {}).get("spec", {}).get("containers", ())
            return next((_tag(container["image"]) for container in containers), "")
    return ""


def _tag(image: str) -> str:
    """`v1.36.3` of `registry.k8s.io/kube-apiserver:v1.36.3`; "" where there is a digest alone."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _flannel_backend(answers: Answers) -> str:
    text = answers.documents.get(FLANNEL, {}).get("data", {}).get("net-conf.json", "{}")
    backend: str = json.loads(text).get("Backend", {}).get("Type", "")
    return backend


def _node_ports(services: Iterable[Json]) -> dict[str, str]:
    return {
        str(port["nodePort"]): f"{item['metadata']['namespace']}/{_name(item)}"
        for item in services
        for port in item["spec"].get("ports", ())
        if port.get("nodePort")
    }
