"""Kubernetes objects (as the API's JSON has them) read into the evidence's types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.verify.devices import MIG_PREFIX
from gpuboot.verify.evidence import GpuPod, KubeNode

Json = Mapping[str, Any]

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
# up to driver 460 a MIG device is called MIG-GPU-<UUID of its GPU>/<GI>/<CI>
_UUID = re.compile(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)")
_ENDED = {"Succeeded", "Failed"}


def parse_node(item: Json) -> KubeNode:
    """A node with what it offers and whether it takes pods."""
    status = item["status"]
    allocatable = status.get("allocatable", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    info = status.get("nodeInfo", {})
    return KubeNode(
        name=item["metadata"]["name"],
        ready=conditions.get("Ready") == "True",
        cordoned=bool(item.get("spec", {}).get("unschedulable")),
        gpus=sum(int(allocatable.get(name, 0)) for name in GPU_RESOURCES),
        mig={name: int(n) for name, n in allocatable.items() if name.startswith(MIG_PREFIX)},
        versions={
            "kubelet": info.get("kubeletVersion", ""),
            "runtime": info.get("containerRuntimeVersion", ""),
            "kernel": info.get("kernelVersion", ""),
            "system": info.get("osImage", ""),
        },
        labels=item["metadata"].get("labels", {}),
    )


def gpu_pods(items: Iterable[Json]) -> tuple[GpuPod, ...]:
    """Pods bound to a node that hold GPUs: neither ended nor without a GPU request."""
    pods = []
    for item in items:
        claims = requested(item)
        bound = item["spec"].get("nodeName", "")
        if claims and bound and item.get("status", {}).get("phase") not in _ENDED:
            meta = item["metadata"]
            gpus = sum(claims.get(name, 0) for name in GPU_RESOURCES)
            mig = {name: count for name, count in claims.items() if name.startswith(MIG_PREFIX)}
            pods.append(
                GpuPod(
                    namespace=meta["namespace"], name=meta["name"], node=bound, gpus=gpus, mig=mig
                )
            )
    return tuple(pods)


def requested(pod: Json) -> dict[str, int]:
    """GPUs and MIG devices that the scheduler counts for a pod, by resource.

    The sum of its containers, or one init container's where that is more (extended resources
    have limits = requests).
    """

    def limits(container: Json) -> Counter[str]:
        given = container.get("resources", {}).get("limits", {})
        return Counter(
            {
                name: int(amount)
                for name, amount in given.items()
                if name in GPU_RESOURCES or name.startswith(MIG_PREFIX)
            }
        )

    claims: Counter[str] = Counter()
    for container in pod["spec"].get("containers", []):
        claims += limits(container)
    for container in pod["spec"].get("initContainers", []):
        claims |= limits(container)
    return dict(+claims)


def untolerated_taint(item: Json, tolerated: Iterable[str]) -> str:
    """A taint that keeps our pods off a node, as `key=value:effect`; "" without one.

    + tolerated: taint keys that our pods tolerate. `unschedulable` is left to the caller, who knows
      that the node is cordoned
    """
    known = {*tolerated, "node.kubernetes.io/unschedulable"}
    for taint in item.get("spec", {}).get("taints", []):
        if taint["key"] not in known and taint["effect"] in {"NoSchedule", "NoExecute"}:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"{taint['key']}{value}:{taint['effect']}"
    return ""


def parse_vectoradd_log(log: str) -> tuple[tuple[str, ...], bool]:
    """What a vectorAdd pod's log says: what nvidia-smi listed, and whether it passed.

    A pod that holds a MIG device sees its GPU as well, which it does not hold.
    """
    listed = dict.fromkeys(uuid for uuid, _ in _UUID.findall(log))
    instances = tuple(uuid for uuid in listed if uuid.startswith("MIG-"))
    return instances or tuple(listed), "Test PASSED" in log


@dataclass(frozen=True)
class PodIssue:
    """Why a pod does not run, or how it ended.

    + error: in the words of Kubernetes; "" for a pod about which nothing bad is known
    + failed: it will not recover, so nobody has to wait for it
    """

    error: str = ""
    failed: bool = False


def pod_issue(pod: Json) -> PodIssue:
    """What Kubernetes says is wrong with a pod."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed":
        return PodIssue(_reason(status) or "it failed", failed=True)
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return PodIssue(condition.get("message") or "not scheduled")
    for container in status.get("containerStatuses", []):
        if waiting := container.get("state", {}).get("waiting"):
            reason = waiting.get("reason", "")
            message = f"{reason}: {waiting.get('message', '')}".rstrip(": ")
            failed = reason in {"InvalidImageName", "CreateContainerError", "RunContainerError"}
            return PodIssue("" if reason == "ContainerCreating" else message, failed)
    return PodIssue()


def unschedulable(pod: Json) -> bool:
    """Whether no node has taken the pod."""
    return not pod["spec"].get("nodeName")


def _reason(status: Json) -> str:
    for container in status.get("containerStatuses", []):
        if ended := container.get("state", {}).get("terminated"):
            message = ended.get("message") or ended.get("reason", "")
            return f"exit code {ended.get('exitCode')}: {message}".rstrip(": ")
    return str(status.get("message") or status.get("reason") or "")
