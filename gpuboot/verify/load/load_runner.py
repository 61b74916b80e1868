"""Keeps free GPUs of a cluster busy for a while, and removes what it made however it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.objects import Node, read_nodes
from gpuboot.cluster.pods import Pod, read_holders
from gpuboot.config.settings import Settings
from gpuboot.verify.load import load_answers, load_pods
from gpuboot.verify.load.load_answers import GpuLoad, Outcome
from gpuboot.verify.load.load_pods import CONTAINER, GRACE_S, LABELS, START_S, LoadRequest
from gpuboot.verify.pod_results import pod_issue
from gpuboot.verify.session import Namespace, Session, delete_namespace, pod_name

PREFIX = "gpuboot-load-"
ENDS = "gpuboot.io/ends"  # annotation: seconds since 1970 by which nothing of it runs any more
_LOOK_EVERY_S = 1.0
_PROGRESS_EVERY_S = 10.0
_UNSCHEDULED_S = 15.0  # free GPUs are counted before asking, so a pod that waits longer lost a race

Progress = Callable[[str], None]


@dataclass
class _Trial:
    """A pod on a node.

    + reason: why it is given up
    + finished: nobody waits for it
    """

    node: str
    requested_at: float
    finished: bool = False
    reason: str = ""
    gpus: Sequence[GpuLoad] = field(default_factory=list)


def run(
    cluster: Cluster,
    names: Iterable[str],
    settings: Settings,
    request: LoadRequest,
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
    nodes, plan = _plan(cluster, names, settings, request)
    outcome = Outcome(kind=request.kind, asked_s=request.seconds, left=dict(plan.left))
    if not plan.gpus:
        return outcome
    ends = str(now + 2 * START_S + request.seconds + GRACE_S)
    kind = Namespace(PREFIX, LABELS, {ENDS: ends})
    session = Session(cluster, progress, START_S + request.seconds, kind)
    runner = _Runner(session, request, progress, stopped)
    try:
        session.create(
            [
                load_pods.pod(nodes[name], count, request, now + START_S, settings)
                for name, count in plan.gpus.items()
            ]
        )
        return runner.wait(outcome, plan.gpus)
    finally:
        progress("removing the pods")
        session.close()


def remove_leftovers(cluster: Cluster, now: int, progress: Progress) -> None:
    """Remove what killed commands have left, once its time is over: others may be at work."""
    namespaces = cluster.json("/api/v1/namespaces", Namespace(PREFIX, LABELS).selector)["items"]
    for item in namespaces:
        name, notes = item["metadata"]["name"], item["metadata"].get("annotations") or {}
        ends = notes.get(ENDS, "")
        if item["status"].get("phase") == "Terminating" or (ends.isdigit() and int(ends) > now):
            continue
        progress(f"removing what a killed load has left: {name}")
        delete_namespace(cluster, name)


def _plan(
    cluster: Cluster, names: Iterable[str], settings: Settings, request: LoadRequest
) -> tuple[Mapping[str, Node], load_pods.Plan]:
    nodes = read_nodes(cluster)
    return nodes, load_pods.plan(names, nodes, read_holders(cluster), settings, request)


class _Runner:
    def __init__(
        self,
        session: Session,
        request: LoadRequest,
        progress: Progress,
        stopped: Callable[[], bool],
    ) -> None:
        self._session = session
        self._request = request
        self._progress = progress
        self._stopped = stopped

    def wait(self, outcome: Outcome, gpus: Mapping[str, int]) -> Outcome:
        """Wait until all pods have ended, time is up or a person ends it; with progress."""
        started = reported_at = time.monotonic()
        trials = [_Trial(node, started) for node in gpus]
        until = started + START_S + self._request.seconds + GRACE_S
        while not all(trial.finished for trial in trials) and time.monotonic() < until:
            if self._stopped():
                outcome = replace(outcome, stopped=True)
                break
            created_pods = self._session.pods()
            for trial in trials:
                if not trial.finished:
                    self._look_at(trial, created_pods.get(pod_name("load", trial.node)))
            if time.monotonic() - reported_at >= _PROGRESS_EVERY_S:
                self._report(trials, created_pods)
                reported_at = time.monotonic()
            self._session.wait(_LOOK_EVERY_S)
        return self._final_outcome(outcome, trials)

    def _look_at(self, trial: _Trial, pod: Pod | None) -> None:
        elapsed = time.monotonic() - trial.requested_at
        if pod is None:
            trial.finished, trial.reason = True, self._session.loss()
            return
        issue = pod_issue(pod)
        state = pod.container(CONTAINER).state
        over = state == "terminated" or issue.failed
        log = self._session.whole_log if over else self._session.log
        trial.gpus = load_answers.read(trial.node, log(pod.name, CONTAINER))
        unscheduled = not pod.node and elapsed > _UNSCHEDULED_S
        late = pod.container(CONTAINER).waits and (
            elapsed > START_S or (issue := self._session.issue(pod)).failed
        )
        if over or unscheduled or late:
            trial.finished, trial.reason = (
                True,
                issue.error or ("" if over else "its pod did not start"),
            )
            if not over:
                self._session.delete(pod.name)

    def _report(self, trials: Iterable[_Trial], created_pods: Mapping[str, Pod]) -> None:
        for trial in trials:
            for gpu in trial.gpus:
                if not gpu.ended:
                    line = gpu.said or "no count yet"
                    self._progress(f"{trial.node} {gpu.uuid}: {line}, by {gpu.program or 'nobody'}")
            pod = created_pods.get(pod_name("load", trial.node))
            if not trial.gpus and not trial.finished and pod is not None:
                reason = pod_issue(pod).error or "the pod starts"
                self._progress(f"{trial.node}: {reason}")

    def _final_outcome(self, outcome: Outcome, trials: Sequence[_Trial]) -> Outcome:
        skipped_nodes = dict(outcome.left)
        for trial in trials:
            if not trial.gpus:
                skipped_nodes[trial.node] = self._reason_for(trial, outcome.stopped)
        results = [self._last(gpu, outcome.stopped) for trial in trials for gpu in trial.gpus]
        return replace(outcome, gpus=tuple(results), left=skipped_nodes)

    def _reason_for(self, trial: _Trial, stopped: bool) -> str:
        if self._request.uuid and trial.finished and not trial.reason:
            return f"{self._request.uuid} is none of its free GPUs: a pod holds it"
        return trial.reason or ("ended before it began" if stopped else "no answer from its pod")

    @staticmethod
    def _last(gpu: GpuLoad, stopped: bool) -> GpuLoad:
        """A load that nobody has seen the end of, and nobody has stopped, is an error."""
        if gpu.ended or gpu.error or stopped:
            return gpu
        return replace(gpu, error="its program did not end in time")
