"""The state of a cluster, out of what its API server answers."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import yaml

from gpuboot.cluster import serving_requests
from gpuboot.cluster.api_answers import Answers, Json, parse_answers
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.kubeadm import immutable_fields
from gpuboot.cluster.manifests import DIGEST, YAML_LOADER
from gpuboot.cluster.node_reports import LEASES, last_report
from gpuboot.cluster.objects import Node, annotations_of, labels_of, parse_node
from gpuboot.cluster.operands import Operand
from gpuboot.cluster.pods import parse_pod
from gpuboot.cluster.terminating import terminating
from gpuboot.cluster.workloads import parse_workload

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
METRICS = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
WORKLOADS = {
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
}
PATHS = (
    *(VERSION, KUBEADM, FLANNEL, POLICIES, NODES, LEASES),
    *(NAMESPACES, SERVICES, CLASSES, RUNTIMES, CONTROL_PLANE),
    *(serving_requests.PATH, METRICS),
    *WORKLOADS.values(),
)
PODS = "/api/v1/pods"
DNS_PODS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"

# somebody may have deleted them; a run makes them again
_OPTIONAL = (KUBEADM, FLANNEL, POLICIES, METRICS)
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
    text = kubeadm.get("data", {}).get("ClusterConfiguration", "")
    record = yaml.load(text, Loader=YAML_LOADER) or {}
    policies = [item.get("status", {}).get("state", "") for item in answers.items(POLICIES)]
    daemonsets = answers.items(WORKLOADS["DaemonSet"])
    return ClusterState(
        server=answers.documents[VERSION]["gitVersion"].removeprefix("v"),
        api_servers=_api_servers(answers.items(CONTROL_PLANE)),
        etcd=_tags(answers.items(CONTROL_PLANE), "etcd"),
        coredns=_coredns(answers.items(WORKLOADS["Deployment"])),
        config=annotations_of(kubeadm).get(DIGEST, ""),
        recorded=str(record.get("kubernetesVersion", "")).removeprefix("v"),
        immutable=immutable_fields(record) if record else {},
        clock=answers.clock,
        nodes=tuple(_nodes(answers)),
        workloads=tuple(
            parse_workload(kind, item)
            for kind, path in WORKLOADS.items()
            for item in answers.items(path)
        ),
        namespaces={_name(item): labels_of(item) for item in answers.items(NAMESPACES)},
        terminating=terminating(answers.items(NAMESPACES)),
        policy=" ".join(policies),
        operands=tuple(_operand(item) for item in daemonsets if _name(item) in _OPERANDS),
        classes={
            _name(item): annotations_of(item).get(_DEFAULT_CLASS) == "true"
            for item in answers.items(CLASSES)
        },
        runtimes={_name(item): item["handler"] for item in answers.items(RUNTIMES)},
        flannel_backend=_flannel_backend(answers),
        node_ports=_node_ports(answers.items(SERVICES)),
        serving_requests=serving_requests.parse(answers.items(serving_requests.PATH)),
        metrics_service=_metrics_service(answers.documents.get(METRICS, {})),
    )


def _api_servers(pods: Iterable[Json]) -> dict[str, str]:
    """Version of each control plane's API server, by its node."""
    return {node: tag.removeprefix("v") for node, tag in _tags(pods, "kube-apiserver").items()}


def _nodes(answers: Answers) -> Iterator[Node]:
    leases = {_name(item): item for item in answers.items(LEASES)}
    for item in answers.items(NODES):
        node = parse_node(item)
        yield replace(node, reported=last_report(leases.get(node.name, {}), item))


def parse_dns_nodes(lines: Iterable[str]) -> tuple[str, ...]:
    """Node of each pod of CoreDNS that is there to stay. Nothing where there is no answer."""
    pods = map(parse_pod, parse_answers(lines, [DNS_PODS]).items(DNS_PODS))
    return tuple(pod.node for pod in pods if not pod.going)


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _operand(item: Json) -> Operand:
    chart = labels_of(item).get("helm.sh/chart", "")
    return Operand(item["metadata"]["namespace"], _name(item), chart, item["spec"]["template"])


def _tags(pods: Iterable[Json], component: str) -> dict[str, str]:
    """Node -> tag of the image of a static pod that kubeadm made there."""
    return {
        item["spec"]["nodeName"]: _tag(item["spec"]["containers"][0]["image"])
        for item in pods
        if labels_of(item).get("component") == component
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


def _metrics_service(item: Json) -> str:
    service = item.get("spec", {}).get("service") or {}
    return f"{service['namespace']}/{service['name']}" if service else ""


def _node_ports(services: Iterable[Json]) -> dict[str, str]:
    return {
        str(port["nodePort"]): f"{item['metadata']['namespace']}/{_name(item)}"
        for item in services
        for port in item["spec"].get("ports", ())
        if port.get("nodePort")
    }
