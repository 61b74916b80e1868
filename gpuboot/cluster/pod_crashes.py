"""Containers that end again and again, and which of their pods to start anew.

The kubelet waits before each start of such a container: 10 s, then twice as long each time, up to
five minutes. Whatever made it end may be over long before.

Sources: kubernetes v1.36.3, pkg/kubelet/kubelet.go (its back-off) and
pkg/kubelet/kuberuntime/kuberuntime_manager.go (the text that tells it).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from gpuboot.cluster.pods import Pod

_LOOP = "CrashLoopBackOff"
_BACK_OFF = re.compile(r"back-off (?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)? restarting failed container")
# shorter waits end by themselves before another pod would be up
_LONG_S = 40.0
_SOON_S = 20.0
# how a Go program that ends with a panic begins to list where it was
_STACK = re.compile(r"goroutine \d+ ")
_MAX_LINES = 5


@dataclass(frozen=True)
class Crash:
    """A container whose next start the kubelet puts off.

    + owner: the controller that makes another pod when this one is deleted; "" where none does, or
      where the kubelet does, which keeps the back-off of a pod that it makes again
    + count: how often it has been started again
    + code, reason: how it ended last, e.g. 137 and OOMKilled
    + ended_at: when that was, in seconds since 1970; 0.0 where it is not known
    + pause_s: for how long it is put off, in seconds
    """

    namespace: str
    pod: str
    node: str
    container: str
    owner: str = ""
    count: int = 0
    code: int = 0
    reason: str = ""
    ended_at: float = 0.0
    pause_s: float = 0.0

    def __str__(self) -> str:
        end_text = f"ended with {self.code}" + (f" ({self.reason})" if self.reason else "")
        return f"{_LOOP} in {self.container}, started again {self.count} times, {end_text}"


def crash(pod: Pod) -> Crash | None:
    """The first of a pod's containers that is in a crash loop."""
    for container in pod.containers:
        termination = container.termination
        if container.state == "waiting" and container.reason == _LOOP and termination:
            return Crash(
                namespace=pod.namespace,
                pod=pod.name,
                node=pod.node,
                container=container.name,
                owner="" if pod.static else pod.owner,
                count=container.restarts,
                code=termination.code,
                reason=termination.reason,
                ended_at=termination.at,
                pause_s=_pause(container.message),
            )
    return None


def to_restart(
    crashes: Iterable[Crash], clock: float, own_prefixes: Mapping[str, Iterable[str]]
) -> list[Crash]:
    """The crashes whose pods a run deletes, since the kubelet would restart them much later.

    + clock: now, in seconds since 1970
    + own_prefixes: namespace -> how names of pods of ours begin in it
    """
    return [
        item
        for item in crashes
        if item.owner
        and item.pod.startswith(tuple(own_prefixes.get(item.namespace, ())))
        and item.pause_s >= _LONG_S
        and item.ended_at + item.pause_s - clock > _SOON_S
    ]


def telling(log: Sequence[str]) -> list[str]:
    """The last lines of a container's log that tell why it ended.

    What a Go program panics with stands above a list of where it was.
    """
    lines = [line for line in log if line.strip()]
    before = list(takewhile(lambda line: not _STACK.match(line), lines))
    return (before or lines)[-_MAX_LINES:]


def _pause(message: str) -> float:
    match = _BACK_OFF.search(message)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    return float(3600 * hours + 60 * minutes + seconds)
