"""kubeadm's packages, images and configuration, from settings, version lock and nodes."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from gpuboot.cluster import flannel, node_gate
from gpuboot.cluster.manifests import YAML_LOADER, json_digest
from gpuboot.config.inventory import API_NAME, Node
from gpuboot.config.settings import Cluster, Settings
from gpuboot.config.versions import Lock
from gpuboot.templates import render

SOCKET = "/run/containerd/containerd.sock"
CRI_SOCKET = f"unix://{SOCKET}"
# By default it answers for 2 s, stops included, and warns where the host has no file for it.
CRICTL = f"crictl --config /dev/null --runtime-endpoint {CRI_SOCKET} --timeout 30s"
API_PORT = 6443


def packages(lock: Lock) -> dict[str, str]:
    """The packages of pkgs.k8s.io with their versions, any build of each."""
    kubernetes = lock.kubernetes
    return {
        "kubelet": f"{kubernetes.version}-*",
        "kubeadm": f"{kubernetes.version}-*",
        "kubectl": f"{kubernetes.version}-*",
        "kubernetes-cni": f"{kubernetes.cni}-*",
        "cri-tools": f"{kubernetes.cri_tools}-*",
    }


def worker_images(lock: Lock) -> list[str]:
    """What every node runs before it is Ready; pulled ahead while the control plane starts."""
    return [
        f"registry.k8s.io/kube-proxy:v{lock.kubernetes.version}",
        f"registry.k8s.io/pause:{lock.kubernetes.pause}",
        *flannel.images(lock),
    ]


def first_images(lock: Lock, node: Node) -> list[str]:
    """What this node runs first, as far as it is known before kubeadm is installed."""
    if node.role == "worker":
        return worker_images(lock)
    parts = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    version = lock.kubernetes.version
    return [*(f"registry.k8s.io/{part}:v{version}" for part in parts), *worker_images(lock)]


def endpoint(cluster: Cluster, nodes: Sequence[Node]) -> str:
    """`host:port` of the API server that nodes join by."""
    if cluster.endpoint:
        return cluster.endpoint
    address = next(node.address for node in nodes if node.leader)
    return f"[{address}]:{API_PORT}" if ":" in address else f"{address}:{API_PORT}"


def balanced(cluster: Cluster, nodes: Sequence[Node]) -> bool:
    """Whether each node without an API server has a load balancer (`gpuboot.cluster.endpoint`).

    + cluster: with the endpoint that is in force
    """
    has_several_control_planes = sum(node.role == "control_plane" for node in nodes) > 1
    return has_several_control_planes and api_name_in_force(cluster) and not cluster.virtual_ip


def api_name_in_force(cluster: Cluster) -> bool:
    """Whether nodes resolve the endpoint's name by what gpuboot writes to /etc/hosts.

    + cluster: with the endpoint that is in force
    """
    return cluster.endpoint == f"{API_NAME}:{API_PORT}"


def way_to_api(cluster: Cluster, nodes: Sequence[Node]) -> str:
    """What stands between nodes and the API servers; "" for nothing, or what is the site's own.

    Pods of the host's network read /etc/hosts when they start, so these begin anew when it changes.

    + cluster: with the endpoint that is in force
    """
    if api_name_in_force(cluster) and cluster.virtual_ip:
        return cluster.virtual_ip
    return "balanced" if balanced(cluster, nodes) else ""


def untainted(cluster: Cluster, nodes: Sequence[Node]) -> bool:
    """Whether workloads may run on control-plane nodes."""
    if cluster.schedule_on_control_plane is not None:
        return cluster.schedule_on_control_plane
    return all(node.role == "control_plane" for node in nodes)


def init_config(
    settings: Settings,
    lock: Lock,
    nodes: Sequence[Node],
    certificate_key: str = "",
    node: Node | None = None,
) -> str:
    """A control plane's kubeadm configuration: all four documents.

    + node: the control plane; None: the leader
    + certificate_key: key that other control-plane nodes decrypt the certificates with (secret)
    """
    cluster = settings.cluster
    node = node or next(item for item in nodes if item.leader)
    six = ipaddress.ip_address(node.address).version == 6
    anywhere = "::" if six else "0.0.0.0"
    bracketed = "[::]" if six else anywhere
    return render(
        "kubernetes/kubeadm-init.yaml.j2",
        cluster=cluster,
        node=node,
        taints=_taints(settings, nodes, node),
        cri_socket=CRI_SOCKET,
        version=f"v{lock.kubernetes.version}",
        certificate_names=_certificate_names(cluster, nodes),
        certificate_key=certificate_key,
        any_address=anywhere,
        etcd_metrics=f"http://{bracketed}:2381",
        proxy_metrics=f"{bracketed}:10249",
    )


def _taints(settings: Settings, nodes: Sequence[Node], node: Node) -> list[dict[str, str]] | None:
    anywhere = untainted(settings.cluster, nodes)
    return node_gate.registration_taints(node, anywhere, settings.gate.enabled)


def _certificate_names(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    names = ["localhost", "127.0.0.1"]  # how the verification reaches it, through an SSH tunnel
    for node in nodes:
        if node.role == "control_plane":
            names += [node.name, node.address]
    if cluster.endpoint:
        names.append(cluster.endpoint.rpartition(":")[0].strip("[]"))
    if cluster.virtual_ip:
        names.append(cluster.virtual_ip)
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Configuration:
    """kubeadm's configuration of a cluster, and what tells whether it is the one in force.

    + text: what `init_config` gives
    + digest: of everything that can be changed in a living cluster
    + kubelet: digest of the kubelets' part
    + immutable: what no re-run can change, by its name in the settings
    """

    text: str
    digest: str
    kubelet: str
    immutable: dict[str, str]


def configuration(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> Configuration:
    """The cluster's configuration with its digests."""
    text = init_config(settings, lock, nodes)
    parts = {item["kind"]: item for item in yaml.load_all(text, Loader=YAML_LOADER)}
    cluster = parts["ClusterConfiguration"]
    changeable: dict[str, Any] = {
        "parts": [cluster[name] for name in ("controllerManager", "scheduler", "etcd")],
        "proxy": parts["KubeProxyConfiguration"],
        "kubelet": parts["KubeletConfiguration"],
    }
    if way := way_to_api(settings.cluster, nodes):
        # kube-proxy's pods have read before that the API's name is the one control plane's
        changeable["api"] = way
    return Configuration(
        text,
        json_digest(changeable),
        json_digest(parts["KubeletConfiguration"]),
        immutable_fields(cluster),
    )


def immutable_fields(cluster: Mapping[str, Any]) -> dict[str, str]:
    """What a ClusterConfiguration fixes for good, by its name in the settings.

    + cluster: the document as a map, ours or the one that kubeadm keeps in the cluster
    """
    networking = cluster.get("networking", {})
    fields = {
        "cluster.pod_cidr": networking.get("podSubnet", ""),
        "cluster.service_cidr": networking.get("serviceSubnet", ""),
        "cluster.dns_domain": networking.get("dnsDomain", ""),
        "cluster.endpoint": cluster.get("controlPlaneEndpoint", ""),
    }
    return {key: str(value) for key, value in fields.items()}


def join_config(
    settings: Settings,
    nodes: Sequence[Node],
    node: Node,
    ca_hash: str,
    token: str,
    certificate_key: str = "",
) -> str:
    """A node's kubeadm join configuration. The result is secret.

    + ca_hash: `ca_hash` of the cluster's certificate authority
    + token: `<id>.<secret>` of a bootstrap token
    + certificate_key: for control-plane nodes: as given to `init_config`
    """
    return render(
        "kubernetes/kubeadm-join.yaml.j2",
        cluster=settings.cluster,
        node=node,
        taints=_taints(settings, nodes, node),
        cri_socket=CRI_SOCKET,
        endpoint=endpoint(settings.cluster, nodes),
        token=token,
        ca_hash=ca_hash,
        certificate_key=certificate_key,
    )
