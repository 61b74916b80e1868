"""Plans and makes the pods that try a node's free GPUs and MIG devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuboot.cluster import node_gate
from gpuboot.cluster.objects import GPU_RESOURCES, Node, count
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.hosts.mig_devices import uses_mig
from gpuboot.verify.checks.kubernetes_checks import effective_strategy
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.session import LABELS, pod_name

TOLERATED_TAINTS = ("nvidia.com/gpu", "node-role.kubernetes.io/control-plane", node_gate.KEY)
GRACE_S = 120  # a pod that nobody deletes ends itself this long after the time-out
# GPU feature discovery's labels of each resource: pods that share one GPU or MIG instance
_REPLICAS = re.compile(r"(nvidia\.com/(?:gpu|mig-.+))\.replicas")
# Listing UUIDs first names the devices even when the computation fails. CUDA's variable chooses
# one of them; all are tried at once, each line with its UUID. Only sh itself is taken for granted.
_SCRIPT = """\
listed=$(nvidia-smi -L 2>&1); code=$?
printf '%s\\n' "$listed"
set -f
for word in $listed; do
  case $word in
    GPU-*")") gpus="$gpus ${word%)}" ;;
    MIG-*")") migs="$migs ${word%)}" ;;
  esac
done
# it exits with a code other than 0 for a warning as well
[ "$gpus$migs" ] || exit "$((code ? code : 1))"
for uuid in ${migs:-$gpus}; do
  {
    said=$(CUDA_VISIBLE_DEVICES=$uuid /cuda-samples/vectorAdd 2>&1); code=$?
    printf '%s\\n' "$said" | while IFS= read -r line; do printf '%s: %s\\n' "$uuid" "$line"; done
    printf '%s: exit %s\\n' "$uuid" "$code"
  } &
done
"""


@dataclass(frozen=True)
class Script:
    """What a container runs beside, and its arguments $1, $2, …"""

    text: str = ""
    arguments: tuple[str, ...] = ()


NO_SCRIPT = Script()


@dataclass(frozen=True)
class PodPlan:
    """The pods to start: node -> resource -> how many; and why other nodes get none."""

    pods: Mapping[str, Mapping[str, int]]
    skipped_nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(sum(resources.values()) for resources in self.pods.values())


def plan_pods(
    names: Iterable[str],
    nodes: Mapping[str, Node],
    gpu_pods: tuple[Pod, ...],
    tolerated: Sequence[str] = TOLERATED_TAINTS,
) -> PodPlan:
    """Plan a pod for every GPU and every MIG device that is free.

    + names: GPU nodes of the inventory
    + gpu_pods: pods that hold GPUs now
    + tolerated: keys of the taints that do not keep our pods away
    """
    pods: dict[str, Mapping[str, int]] = {}
    skipped: dict[str, str] = {}
    for name in names:
        node = nodes.get(name)
        if node is None or not node.ready:
            skipped[name] = "the node is not Ready"
        elif node.kubelet_error:
            skipped[name] = node.kubelet_error
        elif node.cordoned:
            skipped[name] = "the node is cordoned"
        elif taint := node.untolerated_taint(tolerated):
            skipped[name] = f"the node has the taint {taint}"
        else:
            pods[name] = _free(node, [pod for pod in gpu_pods if pod.node == name])
    return PodPlan(pods, skipped)


def _free(node: Node, gpu_pods: Iterable[Pod]) -> dict[str, int]:
    """How many of a node's GPUs and MIG devices no pod holds, by resource."""
    held_counts = Counter[str]()
    for pod in gpu_pods:
        held_counts.update({GPU_RESOURCE: pod.gpus, **pod.mig})
    offered_counts = {GPU_RESOURCE: node.gpus, **node.mig}
    return {
        name: count - held_counts[name]
        for name, count in offered_counts.items()
        if count > held_counts[name]
    }


@dataclass(frozen=True)
class GpuContainer:
    """A container that asks for devices of one resource.

    + count: how many
    + isolated: it is the only container of its pod, for one device: nothing else can spoil it
    """

    node: str
    pod: str
    name: str
    resource: str = GPU_RESOURCE
    count: int = 1
    isolated: bool = True


def containers(node: Node, free: Mapping[str, int], settings: Settings) -> list[GpuContainer]:
    """The containers for a node's free devices, in one pod where that can be.

    With several devices of a resource, one container asks for one and another for the rest: each
    must see as many as it asked for, and no device twice.
    """
    if not can_share_a_pod(node, settings):
        return separate_containers(node, free)
    counts = [
        (resource, part)
        for resource, count in free.items()
        for part in ((1, count - 1) if count > 1 else (1,))
    ]
    pod, isolated = pod_name("vectoradd", node.name), len(counts) == 1
    return [
        GpuContainer(node.name, pod, f"vectoradd-{number}", resource, part, isolated)
        for number, (resource, part) in enumerate(counts)
    ]


def separate_containers(node: Node, free: Mapping[str, int]) -> list[GpuContainer]:
    """A pod of its own for each free device, so that none can spoil another's answer."""
    devices = [resource for resource, count in free.items() for _ in range(count)]
    return [
        GpuContainer(node.name, pod_name("vectoradd", node.name, number), "vectoradd", resource)
        for number, resource in enumerate(devices)
    ]


def replicas(labels: Mapping[str, str]) -> dict[str, int]:
    """Resource -> how many pods may hold the same of its devices, as GPU feature discovery says."""
    counts = {match[1]: value for name, value in labels.items() if (match := _REPLICAS.match(name))}
    return {name: int(value) for name, value in counts.items() if value.isdecimal() and int(value)}


def can_share_a_pod(node: Node, settings: Settings) -> bool:
    """Whether a container may ask for several devices and know which it got.

    Of GPUs that are shared, a plugin may refuse more than one at once; and under the MIG strategy
    none a container gets GPUs with MIG beside GPUs without.
    """
    shared = settings.gpu_operator.time_slices > 1 or any(
        count > 1 for count in replicas(node.labels).values()
    )
    strategy = effective_strategy(node, settings.gpu_operator.mig_strategy)
    return not shared and not (strategy == "none" and uses_mig(node.labels, node.mig))


def gpu_pod(
    parts: Sequence[GpuContainer],
    node: Node,
    settings: Settings,
    side_script: Script = NO_SCRIPT,
) -> dict[str, Any]:
    """The pod of these containers, which are of one pod.

    + side_script: what the first of them runs at the same time
    """
    return pod_manifest(
        parts[0].pod,
        node,
        settings,
        [
            _container(part, node, settings, NO_SCRIPT if i else side_script)
            for i, part in enumerate(parts)
        ],
        "nvidia" if settings.runtime.mode == "runtimeclass" else "",
    )


def gate_pod(settings: Settings) -> dict[str, Any]:
    """The pod by which the gate's timer tries all free devices of a node; it ends when they did.

    `@NODE@`, `@POD@` and `@LIMITS@` in it stand for the node, its name in a pod's, and what is
    asked for.
    """
    node = Node(name="@NODE@", ready=True, cordoned=True)
    container = {
        "name": "vectoradd",
        "command": ["sh", "-c", f"{_SCRIPT}wait\n"],
        "resources": {"limits": "@LIMITS@"},
    }
    runtime_class = "nvidia" if settings.runtime.mode == "runtimeclass" else ""
    pod = pod_manifest("vectoradd-@POD@", node, settings, [container], runtime_class)
    del pod["spec"]["nodeSelector"]  # it names its node already
    return pod


def pod_manifest(
    name: str,
    node: Node,
    settings: Settings,
    containers: Sequence[Mapping[str, Any]],
    runtime_class: str = "",
) -> dict[str, Any]:
    """A pod on one node, without privileges. It ends itself if nobody deletes it.

    + containers: what is particular to each
    """
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": _hold_s(settings),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {
            "kubernetes.io/hostname": node.labels.get("kubernetes.io/hostname", node.name)
        },
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TOLERATED_TAINTS
        ],
        "containers": [
            {
                "image": settings.verify.image,
                "imagePullPolicy": "IfNotPresent",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                **container,
            }
            for container in containers
        ],
    }
    spec |= {"runtimeClassName": runtime_class} if runtime_class else {}
    spec |= {"nodeName": node.name} if node.cordoned else {}  # past the scheduler
    metadata = {"name": name, "labels": dict(LABELS)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _offered_name(resource: str, node: Node) -> str:
    """What a node calls a resource: a plugin may rename GPUs that it shares (`renameByDefault`)."""
    names = [name for name in GPU_RESOURCES if count(node.allocatable.get(name, 0))]
    return names[0] if resource == GPU_RESOURCE and names else resource


def _container(
    part: GpuContainer, node: Node, settings: Settings, side_script: Script
) -> dict[str, Any]:
    # beside comes first: the listing may end the script
    begin = f"(\n{side_script.text}) &\n" if side_script.text else ""
    script = f"{begin}{_SCRIPT}wait\nexec sleep {_hold_s(settings)}\n"
    return {
        "name": part.name,
        "command": ["sh", "-c", script, "sh", *side_script.arguments],
        # as NVIDIA's images have it: it must see what it asked for, and no more
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
        "resources": {"limits": {_offered_name(part.resource, node): str(part.count)}},
    }


def _hold_s(settings: Settings) -> int:
    return settings.verify.timeout_s + GRACE_S
