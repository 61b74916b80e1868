"""Who sees which GPU: pods with one, containers beside them without, and what both print."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuboot.cluster.objects import Node
from gpuboot.config.settings import Settings
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.verify.checks import isolation
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence, IsolationResult
from gpuboot.verify.pod_results import listed_devices
from gpuboot.verify.session import pod_name
from gpuboot.verify.workload_pods import pod_manifest, replicas

HOLDER, BYSTANDER = "holder", "bystander"
END = "gpuboot: end"
DRIVER_LABEL = "nvidia.com/cuda.driver-version.full"
_COUNT_LABEL = "nvidia.com/gpu.count"
_HOLD_S = 30  # so that all containers look while all devices are held
# The image has no driver: what it runs here the container runtime has put in.
_SCRIPT = f"""\
nvidia-smi -L 2>&1
echo "driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null)"
for device in /dev/nvidia* /dev/dri/*; do [ -e "$device" ] && echo "device $device"; done
echo "{END}"
exec sleep {_HOLD_S}
"""
_LINE = re.compile(r"^(driver|device) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Look:
    """What a container printed.

    + resource: what it was given one of; "" for a bystander, which was given nothing
    + shared: other pods may hold the same device
    + uuids: that nvidia-smi listed; devices: paths; driver: version
    + error: why it printed nothing
    """

    node: str
    pod: str
    container: str = HOLDER
    resource: str = ""
    shared: bool = False
    uuids: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    driver: str = ""
    error: str = ""

    def __str__(self) -> str:
        role = f"given one {self.resource}" if self.resource else "given no device"
        sight = ", ".join(self.uuids or self.devices) or "nothing"
        driver = f", driver {self.driver}" if self.driver else ""
        return (
            f"{self.node}: {self.pod}/{self.container}, {role}, sees {self.error or sight}{driver}"
        )


def holders(node: Node, free: Mapping[str, int]) -> tuple[str, int]:
    """The resource that pods of a node ask for, and how many pods: one more than it has GPUs where
    they are shared, so that two are on one; else two. ("", 0) where nothing is free.
    """
    resource = next(iter(free), "")
    if not resource:
        return "", 0
    count = int(node.labels.get(_COUNT_LABEL, "1")) + 1 if is_shared(node, resource) else 2
    return resource, min(count, free[resource])


def is_shared(node: Node, resource: str) -> bool:
    """Whether several pods may hold the same device of a resource."""
    return replicas(node.labels).get(resource, 1) > 1


def pods(node: Node, resource: str, count: int, settings: Settings) -> list[dict[str, Any]]:
    """Pods with one device each; in the first a container without one stands beside."""
    script = {"command": ["sh", "-c", _SCRIPT]}
    # as NVIDIA's images have it
    every_gpu = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    holder = {"name": HOLDER, **script, "resources": {"limits": {resource: "1"}}}
    bystander = {"name": BYSTANDER, **script, "env": every_gpu}
    runtime_class = "nvidia" if settings.runtime.mode == "runtimeclass" else ""
    return [
        pod_manifest(
            pod_name("access", node.name, number),
            node,
            settings,
            [holder, bystander] if number == 0 else [holder],
            runtime_class,
        )
        for number in range(count)
    ]


def parse_log(look: Look, log: str) -> Look:
    """What a container printed; the look itself before it has printed all."""
    if END not in log:
        return look
    words: dict[str, list[str]] = defaultdict(list)
    for key, value in _LINE.findall(log):
        words[key].append(value)
    return replace(
        look,
        uuids=listed_devices(log),
        devices=tuple(words["device"]),
        driver="".join(words["driver"][:1]),
        error="",
    )


def evaluate_access(probes: Sequence[IsolationResult], looks: Sequence[Look]) -> Result:
    """Whether each container sees the device that it was given, and no other container any.

    + probes: of the pods that were given no GPU, and asked for one in every way
    """
    name = "secure_accelerator_access"
    evidence = Evidence(hosts=(), nodes={}, isolation_results=tuple(probes))
    findings = [
        finding
        for node in dict.fromkeys(item.node for item in probes)
        for finding in isolation.evaluate(Host(node=node, expected_gpus=0), evidence)
    ]
    lines = (*(f"{item.node}: {item.detail}" for item in findings), *map(str, looks))
    leaks = [item for item in findings if item.status == "fail"]
    problems = [f"{item.node}: {item.detail}" for item in leaks]
    problems += [problem for look in looks if (problem := _problem(look))]
    problems += _shared_by_mistake(looks)
    if problems:
        remedy = leaks[0].remedy if leaks else "`gpuboot verify` names the broken link of the GPU"
        return Result(name, "fail", "; ".join(problems), lines, remedy)
    passed = [item for item in findings if item.status == "pass"]
    answered = {look.container for look in looks if not look.error}
    if not passed or answered != {HOLDER, BYSTANDER}:
        reason = "no node answered all questions: " + ("; ".join(lines) or "no GPU is free")
        return Result(name, "not_run", reason, lines, "free a GPU, then run again")
    nodes = len({look.node for look in looks if not look.error})
    summary = (
        f"On {nodes} nodes a container that was given a device saw that device alone, and one that "
        "was given none saw none, in whatever way it asked."
    )
    return Result(name, "pass", summary, lines)


def _problem(look: Look) -> str:
    if look.error:
        return ""
    if not look.resource:
        return f"{look} although it was given none" if look.uuids or look.devices else ""
    return "" if len(look.uuids) == 1 else f"{look}, which is not one device"


def _shared_by_mistake(looks: Iterable[Look]) -> list[str]:
    """Devices that several containers were given, where nothing says that they are shared."""
    pods_by_uuid: dict[str, list[str]] = defaultdict(list)
    for look in looks:
        if look.resource and not look.shared:
            for uuid in look.uuids:
                pods_by_uuid[uuid].append(look.pod)
    return [
        f"{uuid} is seen by {', '.join(names)}"
        for uuid, names in pods_by_uuid.items()
        if len(names) > 1
    ]


def evaluate_driver(looks: Iterable[Look], nodes: Mapping[str, Node]) -> Result:
    """Whether the driver's version on a node's labels is the one that a container meets."""
    name = "driver_runtime_management"
    versions = {
        look.node: (look.driver, nodes[look.node].labels.get(DRIVER_LABEL, ""))
        for look in looks
        if look.driver and look.node in nodes
    }
    lines = tuple(
        f"{node}: a container meets driver {driver}; label {DRIVER_LABEL}: {label or 'none'}"
        for node, (driver, label) in versions.items()
    )
    if any(label not in ("", driver) for driver, label in versions.values()):
        remedy = "restart the pods of gpu-feature-discovery, which write the label"
        return Result(name, "fail", "; ".join(lines), lines, remedy)
    if not versions or not all(label for _, label in versions.values()):
        reason = "; ".join(lines) or "no container with a GPU answered"
        remedy = "GPU feature discovery writes the label: `kubectl get pods -A | grep feature`"
        return Result(name, "not_run", reason, lines, remedy)
    summary = (
        "The driver that the node's labels name is the one that a container of an image without a "
        "driver meets: the container runtime provides it."
    )
    return Result(name, "pass", summary, lines)


def evaluate_sharing(looks: Sequence[Look], nodes: Mapping[str, Node]) -> Result:
    """Whether several pods hold one physical GPU, by time-slicing, MPS or MIG."""
    name = "gpu_sharing"
    sharing_nodes = [
        node
        for node in nodes.values()
        if node.mig or any(is_shared(node, resource) for resource in node.allocatable)
    ]
    if not sharing_nodes:
        return Result(
            name,
            "not_run",
            "no node divides its GPUs or shares them",
            remedy="docs/sharing.md says how a site switches on MIG, time-slicing or MPS",
        )
    names = {node.name for node in sharing_nodes}
    holder_looks = [look for look in looks if look.node in names and look.resource and look.uuids]
    offers = (f"{node.name} offers {_offers(node)}" for node in sharing_nodes)
    lines = (*offers, *map(str, holder_looks))
    uuids = [look.uuids[0] for look in holder_looks]
    instances = [uuid for uuid in uuids if uuid.startswith("MIG-")]
    if instances or len(set(uuids)) < len(uuids):
        return Result(name, "pass", "Pods were given parts of a GPU, or one GPU together.", lines)
    reason = "no two pods were given one GPU: " + ("; ".join(lines))
    return Result(name, "not_run", reason, lines, "free all shares of a GPU, then run again")


def _offers(node: Node) -> str:
    return ", ".join(
        f"{count} {name}"
        for name, count in node.allocatable.items()
        if name.startswith("nvidia.com/")
    )
