"""What became of verification's pods, by Kubernetes' words and by what their containers printed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpuboot.cluster.objects import Condition
from gpuboot.cluster.pods import Pod

# up to driver 460 a MIG device is called MIG-GPU-<UUID of its GPU>/<GI>/<CI>
_UUID = re.compile(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)")
# policy of containers that answer by their termination message; nobody has to follow their logs
TELLS_BY_MESSAGE = "FallbackToLogsOnError"
# what ends or refuses a pod for reasons of its node or of other pods (kubernetes: pkg/kubelet, in
# eviction, preemption, nodeshutdown and lifecycle/predicate.go)
_WITHDRAWN = re.compile(r"Evicted|Preempting|NodeShutdown|Terminated|NodeAffinity|OutOf\S+")
_NEVER_STARTS = ("InvalidImageName", "CreateContainerError", "RunContainerError")


@dataclass(frozen=True)
class DeviceRun:
    """A computation on a device. code: exit status; output: what it printed."""

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
    + withdrawn: its node ended or refused it, which tells nothing of its GPUs
    """

    error: str = ""
    failed: bool = False
    withdrawn: bool = False


def pod_issue(pod: Pod) -> PodIssue:
    """What Kubernetes says is wrong with a pod: the first of its containers that has an issue."""
    if pod.phase == "Failed" and _WITHDRAWN.fullmatch(pod.reason):
        return PodIssue(f"{pod.reason}: {pod.message}".rstrip(": "), failed=True, withdrawn=True)
    failure = next((container for container in pod.containers if container.exit_code), None)
    reason = pod.message or pod.reason
    if failure:
        reason = f"exit code {failure.exit_code}: {failure.message or failure.reason}".rstrip(": ")
    if failure or pod.phase == "Failed":
        return PodIssue(reason or "it failed", failed=True)
    scheduled = pod.conditions.get("PodScheduled", Condition())
    if scheduled.status == "False":
        return PodIssue(scheduled.message or "not scheduled")
    for container in pod.containers:
        if container.state == "waiting":
            failed = container.reason in _NEVER_STARTS
            message = f"{container.reason}: {container.message}".rstrip(": ")
            return PodIssue("" if container.reason == "ContainerCreating" else message, failed)
    return PodIssue()
