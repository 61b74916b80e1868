"""A site of two nodes in which all is well, for diagnoses; cases break one thing of it.

Texts of hosts go through the parsers of the facts: what is broken is what a host prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.objects import Event, Node
from gpuboot.cluster.pods import Container, Pod, Termination
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose import details
from gpuboot.diagnose.cause_model import Finding, diagnose
from gpuboot.diagnose.causes import TABLE
from gpuboot.diagnose.facts import Cluster, Facts, Host
from gpuboot.diagnose.log_lines import parse as parse_line
from gpuboot.hosts import packet_filter
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.packet_rules import PacketFilter
from gpuboot.hosts.pci import PciDevice
from gpuboot.verify.devices import Gpu
from gpuboot.verify.gpu_state import GpuState

NOW = 1_790_000_000.0
LOADED = "595.91.07"
SLOT = "0000:10:00.0"
KERNEL = "6.8.0-90-generic"
SOUND = f"""
state	kubelet active running success 0 loaded
state	containerd active running success 0 loaded
uptime	90000
now	1790000000
module_file	/lib/modules/{KERNEL}/updates/dkms/nvidia.ko
char_links	0
kubelet_cgroup	systemd
toml	/etc/containerd/config.toml 3
toml	/etc/containerd/conf.d/99-nvidia.toml 3
runtime	runc
runtime_cgroup	runc true
runtime	nvidia
runtime_cgroup	nvidia true
disk	/ 41 90000000 7
disk	/var/lib/kubelet 41 90000000 7
resolv_file	/run/systemd/resolve/resolv.conf
resolv	nameserver 10.0.0.2
resolv	search example.org
mtu	eth0 1500
mtu	flannel.1 1450
default_route	default via 10.0.0.1 dev eth0
vxlan	flannel.1 10.0.0.12 eth0
peer	10.0.0.11 eth0 10.0.0.12
rp_filter	all 0
rp_filter	eth0 2
cni	/etc/cni/net.d/10-flannel.conflist
server	https://10.0.0.11:6443
api	401
end	ok
"""


def lines(*changed: str, without: Sequence[str] = ()) -> list[str]:
    """What the script prints: the sound lines, less those that begin so, and others."""
    retained = [line for line in SOUND.strip().splitlines() if not line.startswith(tuple(without))]
    return [*retained[:-1], *changed, retained[-1]] if without or changed else retained


def state(**fields: Any) -> NodeState:
    words = ("hostname", "machine_id", "boot_id", "arch", "os_version", "os_codename", "os_name")
    plain: dict[str, Any] = {**dict.fromkeys(words, "x"), "default_address": "10.0.0.12"}
    plain |= dict.fromkeys(("uid", "cgroup", "memory_mib", "cpus", "clock"), 0)
    plain |= {"kernel": KERNEL, "os_id": "ubuntu", "headers": "installed"}
    plain |= {"pci": (PciDevice(SLOT, 0x2330, "0x030200"),), "driver_loaded": LOADED}
    plain |= {"driver_module": LOADED, "ntp_synchronised": True}
    return NodeState(**(plain | fields))


GPU = Gpu(pci=SLOT, uuid="GPU-1", index=0, name="NVIDIA H100 80GB HBM3")
ANSWERS = GpuState(driver_text=LOADED, gpus=(GPU,), runtime_handlers=("nvidia", "runc"))


def gpu_host(*changed: str, without: Sequence[str] = (), **fields: Any) -> Host:
    """The GPU node, whose script prints other lines; `fields`: those of `Host`."""
    plain = Host(
        node="gpu1",
        name="gpu1",
        gpus=1,
        state=state(),
        kubeadm=KubeadmState(files=("kubelet.conf",), clock=NOW),
        gpu=ANSWERS,
        details=details.parse(lines(*changed, without=without)),
    )
    return replace(plain, **fields)


def control(*changed: str, without: Sequence[str] = (), **fields: Any) -> Host:
    """The control plane, likewise. It has no GPU."""
    plain = Host(
        node="cp1",
        name="cp1",
        role="control_plane",
        state=state(machine_id="y", pci=(), driver_loaded="", driver_module=""),
        kubeadm=KubeadmState(files=("kubelet.conf", "admin.conf"), clock=NOW),
        details=details.parse(
            lines("vxlan\tflannel.1 10.0.0.11 eth0", *changed, without=("vxlan", "peer", *without))
        ),
    )
    return replace(plain, **fields)


def pod(name: str, namespace: str = "ml", node: str = "gpu1", **fields: Any) -> Pod:
    """A pod that runs and is ready."""
    plain = Pod(
        namespace=namespace,
        name=name,
        node=node,
        phase="Running",
        owner="ReplicaSet x",
        ready=True,
        containers=(Container("main", True, 0, "running"),),
    )
    return replace(plain, **fields)


PLUGIN = pod(
    "nvidia-device-plugin-daemonset-x",
    "gpu-operator",
    labels={"app": "nvidia-device-plugin-daemonset"},
    containers=(Container("nvidia-device-plugin", True, 0, "running", started=NOW - 9000),),
)


def waiting(message: str, **fields: Any) -> Pod:
    """A pod without a node."""
    return pod("train-0", node="", phase="Pending", ready=False, waits=message, **fields)


def crashed(code: int = 1, reason: str = "Error", ago: float = 30, **fields: Any) -> dict[str, Any]:
    """What to replace in a pod whose container ended and waits for its next start."""
    termination = Termination(reason, code, "", NOW - ago)
    container = Container("main", False, 5, "waiting", "CrashLoopBackOff", "", termination)
    return {"ready": False, "containers": (container,), **fields}


def stuck(reason: str, message: str = "") -> dict[str, Any]:
    """What to replace in a pod whose container waits to be made."""
    return {
        "ready": False,
        "phase": "Pending",
        "containers": (Container("main", False, 0, "waiting", reason, message),),
    }


def at(ago: float, text: str) -> str:
    """A line as the kubelet gives it, written so many seconds ago."""
    return f"{datetime.fromtimestamp(NOW - ago, UTC).isoformat()} {text}"


def rules(*lines: str) -> PacketFilter:
    """A packet filter as the fact prints it, without its key."""
    return packet_filter.parse(Fields([*(f"filter_rule\t{line}" for line in lines), "end\tok"]))


def event(name: str, reason: str, message: str, namespace: str = "ml", ago: float = 20) -> Event:
    return Event("Pod", namespace, name, reason, message, NOW - ago)


ONE_GPU = {"nvidia.com/gpu": 1}
NODES = (
    Node(
        name="cp1",
        ready=True,
        taints=("node-role.kubernetes.io/control-plane:NoSchedule",),
    ),
    Node(
        name="gpu1",
        ready=True,
        labels={"nvidia.com/gpu.deploy.dcgm-exporter": "true"},
        allocatable={"nvidia.com/gpu": "1"},
        capacity={"nvidia.com/gpu": "1"},
    ),
)


def nodes_with(**fields: Any) -> tuple[Node, ...]:
    """The cluster's nodes, with other values of these fields of gpu1."""
    return (NODES[0], replace(NODES[1], **fields))


EXPORTER = pod(
    "nvidia-dcgm-exporter-x",
    "gpu-operator",
    labels={"app": "nvidia-dcgm-exporter"},
    stamp="sha256:1",
)
OPERATOR = pod("gpu-operator-x", "gpu-operator", "cp1", labels={"app": "gpu-operator"})
DNS = pod("coredns-x", "kube-system", "cp1", labels={"k8s-app": "kube-dns"})
PODS = (EXPORTER, OPERATOR, DNS, PLUGIN)
COREDNS = Workload(kind="Deployment", namespace="kube-system", name="coredns", desired=2, ready=2)
EXPORTERS = Workload(
    kind="DaemonSet",
    namespace="gpu-operator",
    name="nvidia-dcgm-exporter",
    desired=1,
    ready=1,
    selector={"nvidia.com/gpu.deploy.dcgm-exporter": "true"},
    tolerates=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
)
MONITOR = "gpu-operator/nvidia-dcgm-exporter"
STACK = "monitoring/kube-prometheus-stack"
SELECTS = {
    "serviceMonitorSelector": {"matchLabels": {"release": "kube-prometheus-stack"}},
    "serviceMonitorNamespaceSelector": {},
}
TARGET = {
    "pool": "x",
    "labels": {"job": "nvidia-dcgm-exporter", "node": "gpu1"},
    "health": "up",
    "error": "",
    "url": "http://10.244.1.5:9400/metrics",
}


def cluster(**fields: Any) -> Cluster:
    """The cluster; `pods` are added to those that are well, unless they have their names."""
    added: tuple[Pod, ...] = fields.pop("pods", ())
    names = {pod.key for pod in added}
    fields["logs"] = {
        key: tuple(map(parse_line, texts)) for key, texts in fields.get("logs", {}).items()
    }
    plain = Cluster(
        now=NOW,
        nodes=NODES,
        workloads=(COREDNS, EXPORTERS),
        runtimes={"nvidia": "nvidia"},
        namespaces={"gpu-operator": {}, "monitoring": {}},
        monitors=((MONITOR, {"release": "kube-prometheus-stack"}),),
        prometheuses=((STACK, SELECTS),),
        collectors={"gpu-operator/metrics/dcgm-metrics.csv": "sha256:1"},
        targets=(TARGET,),
        pods=(*(pod for pod in PODS if pod.key not in names), *added),
    )
    return replace(plain, **fields)


def site(gpu: Host | None = None, cp: Host | None = None, at: Cluster | None = None) -> Facts:
    """The site, with another host or cluster."""
    hosts = (cp or control(), gpu or gpu_host())
    return Facts(hosts=hosts, cluster=at or cluster(), leader="cp1", pod_cidr="10.244.0.0/16")


def cause_ids(facts: Facts) -> list[str]:
    """The ids of what is found, in the order in which it is told."""
    return [finding.cause.id for finding in findings(facts)]


def findings(facts: Facts) -> tuple[Finding, ...]:
    return diagnose(facts, TABLE)


@dataclass(frozen=True)
class Case:
    """A broken site, and one that looks like it and is not broken so.

    + near: must not have the cause; None: the sound site
    + message: what stands in the evidence
    """

    id: str
    broken: Facts
    near: Facts
    message: str = ""

    def __str__(self) -> str:
        return self.id
