"""What a kubeadm cluster is made from, worked out from settings, version lock and nodes."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Cluster, Settings
from gpuboot.config.versions import Lock
from gpuboot.templates import render

CRI_SOCKET = "unix:///run/containerd/containerd.sock"
API_PORT = 6443
STAMP = "gpuboot.io/sha256"
# containerd's default registry keeps these apart; crictl wants the whole name.
_FLANNEL = "ghcr.io/flannel-io/flannel"
_FLANNEL_PLUGIN = "ghcr.io/flannel-io/flannel-cni-plugin"
_TOKEN_ALPHABET = string.ascii_lowercase + string.digits


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
        f"{_FLANNEL}:{lock.flannel.version}",
        f"{_FLANNEL_PLUGIN}:{lock.flannel.cni_plugin}",
    ]


def endpoint(cluster: Cluster, nodes: Sequence[Node]) -> str:
    """`host:port` of the API server that nodes join by."""
    if cluster.endpoint:
        return cluster.endpoint
    address = next(node.address for node in nodes if node.leader)
    return f"[{address}]:{API_PORT}" if ":" in address else f"{address}:{API_PORT}"


def untainted(cluster: Cluster, nodes: Sequence[Node]) -> bool:
    """Whether workloads may run on control-plane nodes."""
    if cluster.schedule_on_control_plane is not None:
        return cluster.schedule_on_control_plane
    return all(node.role == "control_plane" for node in nodes)


def init_config(
    settings: Settings, lock: Lock, nodes: Sequence[Node], certificate_key: str = ""
) -> str:
    """The leader's kubeadm configuration: all four documents.

    + certificate_key: key that other control-plane nodes decrypt the certificates with (secret)
    """
    cluster = settings.cluster
    leader = next(node for node in nodes if node.leader)
    six = ipaddress.ip_address(leader.address).version == 6
    anywhere = "::" if six else "0.0.0.0"
    bracketed = "[::]" if six else anywhere
    return render(
        "kubernetes/kubeadm-init.yaml.j2",
        cluster=cluster,
        node=leader,
        untainted=untainted(cluster, nodes),
        cri_socket=CRI_SOCKET,
        version=f"v{lock.kubernetes.version}",
        certificate_names=_certificate_names(cluster, nodes),
        certificate_key=certificate_key,
        any_address=anywhere,
        etcd_metrics=f"http://{bracketed}:2381",
        proxy_metrics=f"{bracketed}:10249",
    )


def _certificate_names(cluster: Cluster, nodes: Sequence[Node]) -> list[str]:
    names = ["localhost", "127.0.0.1"]  # how the verification reaches it, through an SSH tunnel
    for node in nodes:
        if node.role == "control_plane":
            names += [node.name, node.address]
    if cluster.endpoint:
        names.append(cluster.endpoint.rpartition(":")[0].strip("[]"))
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class Configuration:
    """kubeadm's configuration of a cluster, and what tells whether it is the one in force.

    + text: what `init_config` gives
    + digest: of everything that can be changed in a living cluster
    + kubelet: digest of the kubelets' part
    + fixed: what no re-run can change, by its name in the settings
    """

    text: str
    digest: str
    kubelet: str
    fixed: dict[str, str]


def configuration(settings: Settings, lock: Lock, nodes: Sequence[Node]) -> Configuration:
    """The cluster's configuration with its digests."""
    text = init_config(settings, lock, nodes)
    parts = {item["kind"]: item for item in yaml.safe_load_all(text)}
    cluster = parts["ClusterConfiguration"]
    changeable = {
        "parts": [cluster[name] for name in ("controllerManager", "scheduler", "etcd")],
        "proxy": parts["KubeProxyConfiguration"],
        "kubelet": parts["KubeletConfiguration"],
    }
    return Configuration(
        text, json_digest(changeable), json_digest(parts["KubeletConfiguration"]), fixed(cluster)
    )


def fixed(cluster: Mapping[str, Any]) -> dict[str, str]:
    """What a ClusterConfiguration fixes for good, by its name in the settings.

    + cluster: the document as a map, ours or the one that kubeadm keeps in the cluster
    """
    networking = cluster.get("networking", {})
    found = {
        "cluster.pod_cidr": networking.get("podSubnet", ""),
        "cluster.service_cidr": networking.get("serviceSubnet", ""),
        "cluster.dns_domain": networking.get("dnsDomain", ""),
        "cluster.endpoint": cluster.get("controlPlaneEndpoint", ""),
    }
    return {key: str(value) for key, value in found.items()}


def json_digest(value: Any) -> str:
    """SHA-256 of what JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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
        untainted=untainted(settings.cluster, nodes),
        cri_socket=CRI_SOCKET,
        endpoint=endpoint(settings.cluster, nodes),
        token=token,
        ca_hash=ca_hash,
        certificate_key=certificate_key,
    )


@dataclass(frozen=True)
class BootstrapToken:
    """The credential one node joins with. `secret` never appears in a repr."""

    id: str
    secret: str = field(repr=False)

    @property
    def value(self) -> str:
        """What kubeadm calls the token."""
        return f"{self.id}.{self.secret}"


def new_token() -> BootstrapToken:
    """A fresh token in the form that Kubernetes asks for: 6 and 16 characters of [a-z0-9]."""
    draw = ["".join(secrets.choice(_TOKEN_ALPHABET) for _ in range(n)) for n in (6, 16)]
    return BootstrapToken(draw[0], draw[1])


def runtime_class(name: str, handler: str) -> str:
    """The RuntimeClass by whose name pods ask for a runtime handler of containerd."""
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return json.dumps({**kind, "metadata": {"name": name}, "handler": handler})


def token_manifest(token: BootstrapToken, node: str, now: datetime, minutes: int = 30) -> str:
    """The Secret that makes a bootstrap token valid for a while. The result is secret.

    + node: name of the node it is for, in the description
    + now: present time, with its time zone
    """
    data = {
        "token-id": token.id,
        "token-secret": token.secret,
        "description": f"gpuboot: {node} joins",
        "expiration": (now + timedelta(minutes=minutes)).isoformat(timespec="seconds"),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{token.id}", "namespace": "kube-system"},
        "stringData": data,
    }
    return json.dumps(manifest)


def ca_hash(pem: str) -> str:
    """kubeadm's pin of a certificate authority: `sha256:` and the digest of its public key.

    + pem: the CA certificate; raises ValueError when it is none
    """
    key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def flannel(settings: Settings, lock: Lock) -> str:
    """flannel's manifest for these settings, without a stamp."""
    cluster = settings.cluster
    six = ipaddress.ip_network(cluster.pod_cidr).version == 6
    network: dict[str, Any] = {
        "EnableNFTables": cluster.proxy_mode == "nftables",
        "Backend": {"Type": cluster.flannel_backend},
    }
    if six:
        network |= {"EnableIPv4": False, "EnableIPv6": True, "IPv6Network": cluster.pod_cidr}
    else:
        network |= {"Network": cluster.pod_cidr}
    return render(
        "kubernetes/flannel.yaml.j2",
        network=network,
        image=f"{_FLANNEL}:{lock.flannel.version}",
        plugin_image=f"{_FLANNEL_PLUGIN}:{lock.flannel.cni_plugin}",
    )


def stamp(manifest: str) -> tuple[str, str]:
    """The manifest with its digest as an annotation of every object and pod template.

    A pod template's annotation restarts its pods when only a ConfigMap changed.
    Returns the manifest and the digest.
    """
    objects = [item for item in yaml.safe_load_all(manifest) if item]
    digest = json_digest(objects)
    for item in objects:
        _annotate(item["metadata"], digest)
        template = item.get("spec", {}).get("template")
        if template:
            _annotate(template.setdefault("metadata", {}), digest)
    return yaml.safe_dump_all(objects, sort_keys=False), digest


def _annotate(metadata: dict[str, Any], digest: str) -> None:
    metadata.setdefault("annotations", {})[STAMP] = digest


def decode(text: str) -> str:
    """The text behind base64 on one line; "" for ""."""
    return base64.b64decode(text).decode()
