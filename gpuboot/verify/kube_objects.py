"""Kubernetes objects (as the API's JSON has them) read into the evidence's types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.hosts.mig_devices import MIG_PREFIX
from gpuboot.verify.evidence import GpuPod, KubeNode

Json = Mapping[str, Any]

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
# up to driver 460 a MIG device is called MIG-GPU-<UUID of its GPU>/<GI>/<CI>
_UUID = re.compile(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)")
_FINISHED_PHASES = {"Succeeded", "Failed"}
# policy of containers that answer by their termination message; nobody has to follow their logs
TELLS_BY_MESSAGE = "FallbackToLogsOnError"


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
        boot_id=info.get("bootID", ""),
    )


def gpu_pods(items: Iterable[Json]) -> tuple[GpuPod, ...]:
    """Pods bound to a node that hold GPUs: neither ended nor without a GPU request."""
    pods = []
    for item in items:
        claims = requested(item)
        bound = item["spec"].get("nodeName", "")
        if claims and bound and item.get("status", {}).get("phase") not in _FINISHED_PHASES:
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
        resource_limits = container.get("resources", {}).get("limits", {})
        return Counter(
            {
                name: int(amount)
                for name, amount in resource_limits.items()
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
    tolerated_keys = {*tolerated, "node.kubernetes.io/unschedulable"}
    for taint in item.get("spec", {}).get("taints", []):
        if taint["key"] not in tolerated_keys and taint["effect"] in {"NoSchedule", "NoExecute"}:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"{taint['key']}{value}:{taint['effect']}"
    return ""


@dataclass(frozen=True)
class DeviceRun:
    """One computation on one device. code: exit status; output: what it printed."""

    code: int
    output: str

    @property
    def passed(self) -> bool:
        return self.code == 0 and "Test PASSED" in self.output

    @property
    def error(self) -> str:
        """Why it failed; "" when it passed."""
        lines = self.output.strip().splitlines()
        # it writes errors at once, and what it did at its end
        excerpt = [line for line in lines if "fail" in line.lower()] or lines[-3:]
        return "" if self.passed else f"vectorAdd ended with {self.code}: {' / '.join(excerpt)}"


def device_runs(log: str, uuids: Iterable[str]) -> dict[str, DeviceRun]:
    """UUID -> its computation, of those that have ended.

    + log: of a container that prints `UUID: ` before each line, and at last `UUID: exit CODE`
    """
    runs = {}
    for uuid in uuids:
        begin = f"{uuid}: "
        gpu_lines = [
            line.removeprefix(begin) for line in log.splitlines() if line.startswith(begin)
        ]
        if gpu_lines and (match := re.fullmatch(r"exit (\d+)", gpu_lines[-1])):
            runs[uuid] = DeviceRun(int(match[1]), "\n".join(gpu_lines[:-1]))
    return runs


def listed_devices(log: str) -> tuple[str, ...]:
    """UUIDs of the devices that `nvidia-smi -L` listed to a container.

    One that holds MIG devices sees their GPUs as well, which it does not hold.
    """
    uuids = dict.fromkeys(uuid for uuid, _ in _UUID.findall(log))
    instances = tuple(uuid for uuid in uuids if uuid.startswith("MIG-"))
    return instances or tuple(uuids)


def parse_vectoradd_log(log: str) -> tuple[tuple[str, ...], bool]:
    """What the log of one vectorAdd says: what nvidia-smi listed, and whether it passed."""
    return listed_devices(log), "Test PASSED" in log


@dataclass(frozen=True)
class PodIssue:
    """Why a pod does not run, or how it ended.

    + error: in the words of Kubernetes; "" for a pod about which nothing bad is known
    + failed: it will not recover, so nobody has to wait for it
    """

    error: str = ""
    failed: bool = False


def pod_issue(pod: Json) -> PodIssue:
    """What Kubernetes says is wrong with a pod: the first of its containers that has an issue."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed":
        return PodIssue(_reason(status) or "it failed", failed=True)
    if any(_exit_code(container) for container in status.get("containerStatuses", [])):
        return PodIssue(_reason(status), failed=True)
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


def container_state(pod: Json, name: str) -> str:
    """`waiting`, `running` or `terminated`."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container.get("name") == name:
            return next(iter(container.get("state", {})), "waiting")
    return "waiting"


def termination_messages(pod: Json) -> dict[str, str]:
    """What each container that has ended said in its termination message."""
    return {
        container["name"]: container["state"]["terminated"].get("message", "")
        for container in pod.get("status", {}).get("containerStatuses", [])
        if "terminated" in container.get("state", {})
    }


def unschedulable(pod: Json) -> bool:
    """Whether no node has taken the pod."""
    return not pod["spec"].get("nodeName")


def _exit_code(container: Json) -> int:
    """0 for a container that has not ended, too."""
    return int(container.get("state", {}).get("terminated", {}).get("exitCode", 0))


def _reason(status: Json) -> str:
    for container in status.get("containerStatuses", []):
        if _exit_code(container):
            terminated = container["state"]["terminated"]
            message = terminated.get("message") or terminated.get("reason", "")
            return f"exit code {terminated.get('exitCode')}: {message}".rstrip(": ")
    return str(status.get("message") or status.get("reason") or "")
