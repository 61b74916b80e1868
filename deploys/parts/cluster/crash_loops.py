"""Crash loops that a wait for pods meets: what containers said, and an end to loops of ours."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyinfra.api.host import Host

from deploys.engine.answers import read
from deploys.engine.commands import inform, warn
from deploys.engine.remote import RemoteError, run
from deploys.parts.cluster.fact import CrashLogs
from deploys.parts.cluster.kubectl import ADMIN_CONF, KUBECTL
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.pod_crashes import Crash, telling, to_restart

_MAX_LOGGED = 3  # crashing containers of which a wait tells the log

# namespace, owner and node of pods that this run has started anew: another time would not help
_restarted: set[tuple[str, str, str]] = set()


@dataclass
class CrashLoops:
    """The crash loops that one wait has met.

    + own_pods: namespace -> how names of pods of ours begin in it
    """

    own_pods: Mapping[str, Iterable[str]]
    _log_lines: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    _crashes: list[Crash] = field(default_factory=list)

    def met(self, leader: Host, state: ClusterState) -> ClusterState:
        """The state, whose issues then quote what crashing containers printed last.

        Pods of ours are started anew, once in a run, where that is sooner than the kubelet would.
        """
        self._crashes = [issue.crash for issue in state.pod_issues if issue.crash]
        self._read()
        for item in to_restart(self._crashes, state.clock, self.own_pods):
            self._restart(leader, item)
        return replace(state, pod_issues=tuple(map(self._with_log, state.pod_issues)))

    def causes(self, text: str) -> list[Crash]:
        """The crash loops that a wait's text names."""
        return [item for item in self._crashes if item.pod in text]

    def log(self, item: Crash) -> str:
        """The last lines of a container that crashed, below a line that names it."""
        lines = self._log_lines.get(_key(item), [])
        head = f"{item.namespace}/{item.pod} on {item.node}, container {item.container}"
        return "\n".join([f"{head}, said last:", *(f"    {line}" for line in lines)])

    def _read(self) -> None:
        unread = [item for item in self._crashes if _key(item) not in self._log_lines][:_MAX_LOGGED]
        if not unread:
            return
        names = [f"{item.namespace}/{item.pod}/{item.container}" for item in unread]
        logs = read(CrashLogs, kubeconfig=ADMIN_CONF, containers=names)
        self._log_lines |= {
            _key(item): telling(logs.get(name, []))
            for item, name in zip(unread, names, strict=True)
        }

    def _with_log(self, issue: PodIssue) -> PodIssue:
        lines = self._log_lines.get(_key(issue.crash), []) if issue.crash else []
        return replace(issue, reason=f"{issue.reason}: {lines[-1]}") if lines else issue

    def _restart(self, leader: Host, item: Crash) -> None:
        key = (item.namespace, item.owner, item.node)
        if key in _restarted:
            return
        _restarted.add(key)
        inform(
            f"restarting pod {item.namespace}/{item.pod} on {item.node}: {item}; the kubelet would "
            f"wait {item.pause_s:.0f} s before it tries again"
        )
        names = f"-n {shlex.quote(item.namespace)} {shlex.quote(item.pod)}"
        try:
            run(leader, f"{KUBECTL} delete pod --wait=false --ignore-not-found {names}")
        except RemoteError as error:
            warn(f"pod {item.namespace}/{item.pod} could not be restarted: {error}")


def _key(item: Crash) -> tuple[str, int]:
    return f"{item.namespace}/{item.pod}/{item.container}", item.count


def remedy(item: Crash) -> str:
    """What tells more about a crash loop."""
    return (
        f"see all that it said: `kubectl -n {item.namespace} logs {item.pod} -c {item.container} "
        "--previous`"
    )
