"""Keeps free GPUs of a cluster busy for a while, and removes what it made however it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuboot.config.settings import Settings
from gpuboot.kubernetes.api import Cluster
from gpuboot.verify import kube_objects
from gpuboot.verify.evidence import KubeNode
from gpuboot.verify.kube_objects import Json
from gpuboot.verify.load import answers, pods
from gpuboot.verify.load.answers import GpuLoad, Outcome
from gpuboot.verify.load.pods import CONTAINER, GRACE_S, LABELS, START_S, Wanted
from gpuboot.verify.session import Namespace, Session, delete_namespace, pod_name

PREFIX = "gpuboot-load-"
ENDS = "gpuboot.io/ends"  # annotation: seconds since 1970 by which nothing of it runs any more
_LOOK_EVERY_S = 1.0
_PROGRESS_EVERY_S = 10.0
_UNSCHEDULED_S = 15.0  # free GPUs are counted before asking, so a pod that waits longer lost a race

Progress = Callable[[str], None]


@dataclass
class _Trial:
    """A pod on a node. + why: it is given up, for this reason; ended: nobody waits for it"""

    node: str
    asked_at: float
    ended: bool = False
    why: str = ""
    gpus: Sequence[GpuLoad] = field(default_factory=list)


def run(
    cluster: Cluster,
    names: Iterable[str],
    settings: Settings,
    wanted: Wanted,
    progress: Progress,
    stopped: Callable[[], bool],
) -> Outcome:
    """Load the free GPUs of these nodes, until the time is up.

    + names: of GPU nodes
    + stopped: whether it is to end now

    Raises `ClusterError`.
    """
    now = int(cluster.now().timestamp())
    remove_leftovers(cluster, now, progress)
    nodes, chosen = _plan(cluster, names, settings, wanted)
    outcome = Outcome(kind=wanted.kind, asked_s=wanted.seconds, left=dict(chosen.left))
    if not chosen.gpus:
        return outcome
    ends = str(now + 2 * START_S + wanted.seconds + GRACE_S)
    kind = Namespace(PREFIX, LABELS, {ENDS: ends})
    session = Session(cluster, progress, START_S + wanted.seconds, kind)
    runner = _Runner(session, wanted, progress, stopped)
    try:
        session.create(
            [
                pods.pod(nodes[name], count, wanted, now + START_S, settings)
                for name, count in chosen.gpus.items()
            ]
        )
        return runner.wait(outcome, chosen.gpus)
    finally:
        progress("removing the pods")
        session.close()


def remove_leftovers(cluster: Cluster, now: int, progress: Progress) -> None:
    """Remove what killed commands have left, once its time is over: others may be at work."""
    found = cluster.json("/api/v1/namespaces", Namespace(PREFIX, LABELS).selector)["items"]
    for item in found:
        name, notes = item["metadata"]["name"], item["metadata"].get("annotations") or {}
        ends = notes.get(ENDS, "")
        if item["status"].get("phase") == "Terminating" or (ends.isdigit() and int(ends) > now):
            continue
        progress(f"removing what a killed load has left: {name}")
        delete_namespace(cluster, name)


def _plan(
    cluster: Cluster, names: Iterable[str], settings: Settings, wanted: Wanted
) -> tuple[Mapping[str, KubeNode], pods.Plan]:
    items = cluster.json("/api/v1/nodes")["items"]
    nodes = {item["metadata"]["name"]: kube_objects.parse_node(item) for item in items}
    taints = {
        item["metadata"]["name"]: kube_objects.untolerated_taint(item, pods.TOLERATED)
        for item in items
    }
    held = kube_objects.gpu_pods(cluster.json("/api/v1/pods")["items"])
    return nodes, pods.plan(names, nodes, held, taints, settings, wanted)


class _Runner:
    def __init__(
        self, session: Session, wanted: Wanted, progress: Progress, stopped: Callable[[], bool]
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._progress = progress
        self._stopped = stopped

    def wait(self, outcome: Outcome, gpus: Mapping[str, int]) -> Outcome:
        """Until all pods have ended, time is up, or somebody wants it to end; with progress."""
        begun = told_at = time.monotonic()
        trials = [_Trial(node, begun) for node in gpus]
        until = begun + START_S + self._wanted.seconds + GRACE_S
        while not all(trial.ended for trial in trials) and time.monotonic() < until:
            if self._stopped():
                outcome = replace(outcome, stopped=True)
                break
            made = self._session.pods()
            for trial in trials:
                if not trial.ended:
                    self._look_at(trial, made.get(pod_name("load", trial.node)))
            if time.monotonic() - told_at >= _PROGRESS_EVERY_S:
                self._report(trials, made)
                told_at = time.monotonic()
            self._session.wait(_LOOK_EVERY_S)
        return self._ended(outcome, trials, gpus)

    def _look_at(self, trial: _Trial, pod: Json | None) -> None:
        spent = time.monotonic() - trial.asked_at
        if pod is None:
            trial.ended, trial.why = True, "somebody deleted the pod"
            return
        issue = kube_objects.pod_issue(pod)
        state = kube_objects.container_state(pod, CONTAINER)
        over = state == "terminated" or issue.failed
        log = self._session.whole_log if over else self._session.log
        trial.gpus = answers.read(trial.node, log(pod["metadata"]["name"], CONTAINER))
        unscheduled = kube_objects.unschedulable(pod) and spent > _UNSCHEDULED_S
        late = state == "waiting" and (
            spent > START_S or (issue := self._session.issue(pod)).failed
        )
        if over or unscheduled or late:
            trial.ended, trial.why = True, issue.error or ("" if over else "its pod did not start")
            if not over:
                self._session.delete(pod["metadata"]["name"])

    def _report(self, trials: Iterable[_Trial], made: Mapping[str, Json]) -> None:
        for trial in trials:
            for gpu in trial.gpus:
                if not gpu.ended:
                    what = answers.rate(gpu) or "no count yet"
                    self._progress(f"{trial.node} {gpu.uuid}: {what}, by {gpu.program or 'nobody'}")
            pod = made.get(pod_name("load", trial.node))
            if not trial.gpus and not trial.ended and pod is not None:
                why = kube_objects.pod_issue(pod).error or "the pod starts"
                self._progress(f"{trial.node}: {why}")

    def _ended(
        self, outcome: Outcome, trials: Sequence[_Trial], gpus: Mapping[str, int]
    ) -> Outcome:
        left = dict(outcome.left)
        for trial in trials:
            if not trial.gpus:
                left[trial.node] = self._why(trial, outcome.stopped)
        found = [self._last(one, outcome.stopped) for trial in trials for one in trial.gpus]
        return replace(outcome, gpus=tuple(found), left=left)

    def _why(self, trial: _Trial, stopped: bool) -> str:
        if self._wanted.uuid and trial.ended and not trial.why:
            return f"{self._wanted.uuid} is none of its free GPUs: a pod holds it"
        return trial.why or ("ended before it began" if stopped else "no answer from its pod")

    @staticmethod
    def _last(gpu: GpuLoad, stopped: bool) -> GpuLoad:
        """A load that nobody has seen the end of, and nobody has stopped, is an error."""
        if gpu.ended or gpu.error or stopped:
            return gpu
        return replace(gpu, error="its program did not end in time")
