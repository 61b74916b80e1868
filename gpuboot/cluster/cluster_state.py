"""What the facts about kubeadm and the cluster say, and what follows from it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuboot.cluster import node_certificates as certificates
from gpuboot.cluster.node_certificates import Certificate
from gpuboot.cluster.node_reports import SILENT_S
from gpuboot.cluster.objects import Node
from gpuboot.cluster.operands import Operand
from gpuboot.cluster.pod_crashes import Crash
from gpuboot.cluster.serving_requests import ServingRequest
from gpuboot.cluster.tokens import ca_hash
from gpuboot.cluster.workloads import Workload
from gpuboot.hosts import remains
from gpuboot.hosts.fact_output import Fields

Step = Literal["init", "join", "upgrade", "kubelet"]
# "": a pod that runs and is not ready yet
IssueKind = Literal["", "creating", "unscheduled", "image", "crash", "config", "mount", "refused"]
Stage = Literal["none", "begun", "done", "foreign"]


@dataclass(frozen=True)
class KubeadmState:
    """How far kubeadm got on one host.

    + packages: installed versions of the five packages of pkgs.k8s.io
    + files: those of admin.conf, kubelet.conf, manifests/kube-apiserver.yaml that exist
    + started: init, join, upgrade, kubelet, node-upgrade: steps of gpuboot that did not end
    + left: links of a pod network of gpuboot's on a host that is in no cluster any more
    + foreign: parts of a cluster that gpuboot did not make, in words
    + cni_files: other configurations of CNI than flannel's, on a host that gpuboot made no node of
    + ca: `sha256:` pin of the cluster's certificate authority; "" for none
    + kubeconfig: root's: absent, same (as admin.conf), stale (same cluster), other
    + kubelet_config: digest of the kubelet's configuration that gpuboot put in force; "" for none
    + kubelet_edited: its file is not as kubeadm wrote it then
    + kubelet_flags: text of kubeadm's file of the kubelet's flags; "" for none
    + images: names of the images in containerd's k8s.io namespace; not read once it has joined
    + certificates: of the control plane, its kubeconfigs and the kubelet
    + restart_due: certificates were renewed, and not all that use them were restarted
    + clock: that moment by the host's clock, in seconds since 1970
    """

    packages: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    cni_files: tuple[str, ...] = ()
    ca: str = ""
    kubeconfig: str = "absent"
    kubelet_config: str = ""
    kubelet_edited: bool = False
    kubelet_flags: str = ""
    images: tuple[str, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    restart_due: bool = False
    clock: float = 0.0


@dataclass(frozen=True)
class PodIssue:
    """A pod that is not ready, on which node ("" when none takes it), and why it cannot start.

    + pod: its name; of a pod that is not made, its controller's
    + reason: "" for one that may only need more time
    + crash: the crash loop of one of its containers, where that is why
    + created: when it was made, in seconds since 1970
    """

    namespace: str
    pod: str
    node: str
    reason: str
    crash: Crash | None = None
    kind: IssueKind = ""
    created: float = 0.0

    def __str__(self) -> str:
        if self.kind == "refused":
            return f"{self.pod} cannot make pods: {self.reason}"
        return f"{self.pod} on {self.node or 'no node'}: {self.reason}"


@dataclass(frozen=True)
class ClusterState:
    """The cluster at one moment, read on the leader.

    + error: why there is no answer; "" when there is one
    + server: version of the API server that answered, without its v
    + api_servers, etcd: node -> version of its API server without its v, tag of its etcd's image
    + coredns: tag of CoreDNS's image; "" for none
    + config: digest of the configuration that gpuboot put in force; "" for none
    + recorded: version of the cluster in kubeadm's own record, without its v: it is written when
      the control plane of the first node has been upgraded
    + immutable: as `gpuboot.cluster.kubeadm.immutable_fields` reads it from that record
    + namespaces: their labels, by name
    + terminating: those that are being deleted, and what each waits for
    + pod_issues: pods that are not ready; read where somebody waits for them
    + policy: state of the GPU Operator's ClusterPolicy; "" for none
    + classes: StorageClasses by name, and whether each is a default one
    + operands: DaemonSets that the GPU Operator makes
    + runtimes: RuntimeClasses by name, and the runtime handler of each
    + flannel_backend: how flannel carries packets, e.g. `vxlan`; "" where it is not known
    + serving_requests: the latest of each kubelet for the certificate that it serves by
    + metrics_service: Service behind the API of resource metrics, as `namespace/name`; "": none
    + absent: nodes that a run goes without; their pods are waited for by nobody
    + node_ports: node port -> the Service, as `namespace/name`, that has it
    + rejection: why the API server takes no report of a silent node; read where somebody waits
    + clock: that moment by the leader's clock, in seconds since 1970
    """

    error: str = ""
    server: str = ""
    api_servers: Mapping[str, str] = field(default_factory=dict)
    etcd: Mapping[str, str] = field(default_factory=dict)
    coredns: str = ""
    config: str = ""
    recorded: str = ""
    immutable: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    workloads: tuple[Workload, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    terminating: Mapping[str, str] = field(default_factory=dict)
    pod_issues: tuple[PodIssue, ...] = ()
    policy: str = ""
    operands: tuple[Operand, ...] = ()
    classes: Mapping[str, bool] = field(default_factory=dict)
    runtimes: Mapping[str, str] = field(default_factory=dict)
    flannel_backend: str = ""
    node_ports: Mapping[str, str] = field(default_factory=dict)
    serving_requests: tuple[ServingRequest, ...] = ()
    metrics_service: str = ""
    absent: tuple[str, ...] = ()
    rejection: str = ""
    clock: float = 0.0

    def is_silent(self, node: Node) -> bool:
        """Whether the kubelet of a node does not report."""
        return self.clock - node.reported > SILENT_S


def parse_kubeadm(lines: Iterable[str]) -> KubeadmState:
    """What `deploys/parts/cluster/fact.sh` printed. Raises `FactOutputError`."""
    values = Fields(lines)
    certificate = values.text("ca")
    leftovers = remains.parse(values)
    return KubeadmState(
        packages=values.pairs("package"),
        files=tuple(values.all("file")),
        started=tuple(values.all("started")),
        left=tuple(values.all("left")),
        foreign=leftovers.cluster,
        cni_files=tuple(leftovers.cni_files),
        ca=ca_hash(certificate) if certificate else "",
        kubeconfig=values.first("kubeconfig"),
        kubelet_config=values.first("kubelet_config"),
        kubelet_edited=bool(values.first("kubelet_edited")),
        kubelet_flags=values.first("kubelet_flags"),
        images=tuple(values.all("image")),
        certificates=certificates.parse(values.words("certificate", 2)),
        restart_due="renewed" in values,
        clock=float(values.first("clock") or 0),
    )


def parse_etcd_health(lines: Iterable[str]) -> str:
    """What `EtcdHealth` printed: why the member is not healthy, "" when it is.

    etcd says `{"health":"true","reason":""}`. Raises `FactOutputError`.
    """
    output = Fields(lines).first("said")
    try:
        health = json.loads(output)
        return "" if health["health"] == "true" else str(health.get("reason") or "not healthy")
    except (ValueError, LookupError, TypeError):
        return output or "no answer"


def immutable_changes(existing: Mapping[str, str], settings: Mapping[str, str]) -> list[str]:
    """What the settings want otherwise than the living cluster has it for good."""
    return [
        f"{key} is {existing[key] or 'not set'}, the settings ask for {value or 'none'}"
        for key, value in settings.items()
        if existing.get(key, value) != value
    ]


def stage(state: KubeadmState, step: Step) -> Stage:
    """How far one of kubeadm's steps is on a host.

    `begun`: gpuboot began it and it did not end, so it is ours to reset and begin again;
    `foreign`: there are parts of a cluster that gpuboot did not leave half made.
    """
    if state.foreign:
        return "foreign"
    if step in state.started:
        return "begun"
    last_file = "admin.conf" if step == "init" else "kubelet.conf"
    if last_file in state.files:
        return "done"
    return "foreign" if state.files else "none"


def belongs_elsewhere(state: KubeadmState, leader_ca: str) -> bool:
    """Whether a host is part of a cluster with another certificate authority."""
    return bool(state.ca and leader_ca and state.ca != leader_ca)
