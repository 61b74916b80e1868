"""Runs vectorAdd on every free GPU and MIG device, in pods."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gpuboot.cluster.node_reports import SILENT_S
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify.checks.pod_remedies import NOT_CONSIDERED
from gpuboot.verify.evidence import WorkloadResult
from gpuboot.verify.heartbeat import Heartbeats
from gpuboot.verify.pod_results import device_runs, listed_devices
from gpuboot.verify.session import OVERTAKEN, Session
from gpuboot.verify.workload_pods import (
    NO_SCRIPT,
    GpuContainer,
    PodPlan,
    Script,
    containers,
    gpu_pod,
    separate_containers,
)

Progress = Callable[[str], None]
_LOOK_EVERY_S = 1.0  # for what no pod tells: time that is up, kubelets that stop
_PROGRESS_EVERY_S = 10.0
_HEARTBEAT_EVERY_S = 5.0
_UNSCHEDULED_S = 15.0  # free GPUs are counted before asking, so a pod that waits longer lost a race
# One GPU that hangs makes nvidia-smi hang for all of its container. Listing eight takes seconds.
_LISTED_S = 60.0


@dataclass
class _Trial:
    """A container that was asked for, and its answer: a result for each device that it told.

    + requested_at: monotonic seconds
    + running_at: likewise, when it was first seen to run
    """

    container: GpuContainer
    requested_at: float
    running_at: float | None = None
    results: Sequence[WorkloadResult] = ()


class Workload:
    """The vectorAdd pods of one verification.

    + session: where they are made
    + progress: takes lines of progress
    + heartbeats: knows nodes whose kubelets stop meanwhile

    A node's devices are tried in one pod. Where that does not tell each by its UUID, because one of
    them keeps the pod from starting or somebody took it, each is tried in a pod of its own.

    After `wait`, `lost_nodes` maps nodes whose kubelets stopped to what is known of each.
    """

    def __init__(
        self, session: Session, settings: Settings, progress: Progress, heartbeats: Heartbeats
    ) -> None:
        self._session = session
        self._settings = settings
        self._progress = progress
        self._heartbeats = heartbeats
        self._heartbeats_read_at = -math.inf
        self._plan = PodPlan({})
        self._nodes: Mapping[str, Node] = {}
        self._trials: list[_Trial] = []
        self.lost_nodes: dict[str, str] = {}

    def start(
        self, plan: PodPlan, nodes: Mapping[str, Node], side_script: Script = NO_SCRIPT
    ) -> dict[str, GpuContainer]:
        """Create all pods at once. Raises `ClusterError`.

        + side_script: what the first container of each node runs as well

        Returns node -> that container, where there is one.
        """
        self._plan, self._nodes = plan, nodes
        parts = [
            part
            for name, free in plan.pods.items()
            for part in containers(nodes[name], free, self._settings)
        ]
        first = {part.node: part for part in reversed(parts)}
        self._create(parts, {part.pod: side_script for part in first.values()})
        return first

    def _create(self, parts: Sequence[GpuContainer], side_scripts: Mapping[str, Script]) -> None:
        """The pods of these containers; what the first one of a pod runs as well, by pod."""
        pods = [
            gpu_pod(
                list(group), self._nodes[node], self._settings, side_scripts.get(pod, NO_SCRIPT)
            )
            for (node, pod), group in groupby(parts, key=lambda part: (part.node, part.pod))
        ]
        self._session.create(pods)
        self._trials += [_Trial(part, time.monotonic()) for part in parts]

    def wait(self) -> list[WorkloadResult]:
        """Wait until every device has answered, failed, or time is up; with progress."""
        started = reported_at = time.monotonic()
        reported = 0
        while self._trials:
            pods = self._session.pods()
            last = time.monotonic() > started + self._settings.verify.timeout_s
            for trial in [trial for trial in self._trials if not trial.results]:
                if trial in self._trials:  # and not replaced meanwhile
                    self._look_at(trial, pods.get(trial.container.pod), last)
            passed = sum(result.passed for result in self._results())
            now, waiting = time.monotonic(), not all(trial.results for trial in self._trials)
            if passed != reported or now - reported_at >= _PROGRESS_EVERY_S:
                self._report(passed, now - started, pods)
                reported, reported_at = passed, now
            if not waiting:
                break
            self._session.wait(_LOOK_EVERY_S)
        return list(self._results())

    def _results(self) -> Iterator[WorkloadResult]:
        return (result for trial in self._trials for result in trial.results)

    def _report(self, passed: int, elapsed: float, pods: Mapping[str, Pod]) -> None:
        waiting = {trial.container.pod for trial in self._trials if not trial.results}
        issues = (self._session.issue(pods[name]).error for name in pods if name in waiting)
        reason = next(filter(None, issues), "")
        self._progress(
            f"vectorAdd: {passed} of {self._plan.total} GPUs passed, {elapsed:.1f} s"
            + (f"; waiting: {reason}" if reason else "")
        )

    def _look_at(self, trial: _Trial, pod: Pod | None, last: bool) -> None:
        """Note the answer of a container that has one."""
        node = trial.container.node
        self._check_heartbeat(node)
        elapsed = time.monotonic() - trial.requested_at
        answer = self._given_up(trial.container, pod) or (
            self._answer(trial.container, pod, elapsed, last) if pod is not None else ()
        )
        final = last or trial.container.isolated or node in self.lost_nodes or pod is None
        answered = sum(result.requested for result in answer if len(result.uuids) == 1)
        if not answer and pod is not None and self._hangs(trial, pod) and not final:
            self._separate(node, "nvidia-smi -L does not end")
        elif answer and answered < trial.container.count and not final:
            self._separate(node, answer[0].error or "its container saw other devices than it got")
        else:
            trial.results = [replace(result, seconds=elapsed) for result in answer]

    def _hangs(self, trial: _Trial, pod: Pod) -> bool:
        """Whether a container has been running for long and has not listed its devices."""
        name, now = trial.container.name, time.monotonic()
        if trial.running_at is None and pod.container(name).state == "running":
            trial.running_at = now
        if trial.running_at is None or now - trial.running_at < _LISTED_S:
            return False
        return not listed_devices(self._session.log(trial.container.pod, name))

    def _separate(self, node: str, reason: str) -> None:
        """Try each device of a node in a pod of its own."""
        self._progress(f"{node}: {reason}; trying each GPU in a pod of its own")
        for pod in {trial.container.pod for trial in self._trials if trial.container.node == node}:
            self._session.delete(pod)
        self._trials = [trial for trial in self._trials if trial.container.node != node]
        self._create(separate_containers(self._nodes[node], self._plan.pods[node]), {})

    def _given_up(self, container: GpuContainer, pod: Pod | None) -> list[WorkloadResult]:
        """The result of a container that nothing will be heard of."""
        result = _result(container, self._session.namespace)
        if loss := self.lost_nodes.get(container.node):
            return [replace(result, error=loss)]
        if pod is None:
            loss = self._session.loss()
            overtaken = loss == OVERTAKEN
            return [replace(result, error=loss, unschedulable=overtaken, withdrawn=not overtaken)]
        return []

    def _answer(
        self, container: GpuContainer, pod: Pod, elapsed: float, last: bool
    ) -> list[WorkloadResult]:
        """A container's results; none while they can still come."""
        result = _result(container, self._session.namespace)
        issue = self._session.issue(pod)
        if not pod.node:
            if elapsed < _UNSCHEDULED_S and not last:
                return []
            reason = issue.error or NOT_CONSIDERED
            return [replace(result, error=reason, unschedulable=True)]
        ending = last or issue.failed
        read = self._session.whole_log if ending else self._session.log
        log = read(container.pod, container.name)
        listed_uuids = listed_devices(log)
        runs = device_runs(log, listed_uuids)
        if not ending and (not listed_uuids or len(runs) < len(listed_uuids)):
            return []
        waited = f"no answer within {elapsed:.0f} s" if not issue.failed else ""
        tail = " / ".join(log.strip().splitlines()[-3:])
        reason = "; ".join(part for part in (issue.error, waited, tail and f"log: {tail}") if part)
        if len(listed_uuids) != container.count:
            problem = "" if len(runs) == len(listed_uuids) > 0 else reason
            passed = bool(runs) and all(run.passed for run in runs.values())
            withdrawn = issue.withdrawn and bool(problem)
            answer = replace(result, uuids=listed_uuids, passed=passed, error=problem)
            return [replace(answer, withdrawn=withdrawn)]
        single_result = replace(result, requested=1)
        return [
            replace(single_result, uuids=(uuid,), passed=runs[uuid].passed, error=runs[uuid].error)
            if uuid in runs
            else replace(single_result, uuids=(uuid,), error=reason, withdrawn=issue.withdrawn)
            for uuid in listed_uuids
        ]

    def _check_heartbeat(self, node: str) -> None:
        """Stop waiting for a node whose kubelet has stopped: no pod of it will answer.

        Called before each pod is read: asking such a node for a log blocks for long.
        """
        if time.monotonic() - self._heartbeats_read_at >= _HEARTBEAT_EVERY_S:
            self._heartbeats.refresh()
            self._heartbeats_read_at = time.monotonic()
        if self._heartbeats.silent_for(node) > SILENT_S:
            self.lost_nodes[node] = self._heartbeats.describe(node)


def _result(container: GpuContainer, namespace: str) -> WorkloadResult:
    return WorkloadResult(
        pod=container.pod,
        namespace=namespace,
        node=container.node,
        resource=container.resource,
        requested=container.count,
    )
