"""Runs NCCL between nodes: round by round, in each some pairs at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuboot.cluster.pods import Pod
from gpuboot.config.settings import Settings
from gpuboot.verify.deep.deep_answers import EXIT, Answer, PairAnswer, finished_answer
from gpuboot.verify.deep.deep_plan import CONTAINER, START_S
from gpuboot.verify.deep.pairs import Pair, keys, pair_s, running_pod, waiting_pod
from gpuboot.verify.pod_results import pod_issue
from gpuboot.verify.session import Session

_LOOK_EVERY_S = 2.0
_HOST_NAME = 63  # characters that Kubernetes leaves of a pod's name

Progress = Callable[[str], None]


@dataclass
class _Trial:
    """A pair, and how far it is.

    + address: of the second pod, once it runs; the first one is asked for then
    + since: monotonic seconds at which the pod that it waits for was asked for, or ran
    + running: mpirun was seen to run
    """

    pair: Pair
    since: float
    address: str = ""
    running: bool = False


class PairRunner:
    """+ uuids: node -> those of its GPUs
    + save: keeps what was found of a pair
    + until: monotonic seconds; no pair begins later, and those at work end
    """

    def __init__(
        self,
        session: Session,
        settings: Settings,
        progress: Progress,
        save: Callable[[PairAnswer], None],
        uuids: Mapping[str, Sequence[str]],
        until: float,
    ) -> None:
        self._session = session
        self._settings = settings
        self._pair_s = pair_s(settings)
        self._progress = progress
        self._save = save
        self._uuids = uuids
        self._until = until
        self._answers: list[PairAnswer] = []
        self._keys_made = False

    def run(self, rounds: Sequence[Sequence[Pair]]) -> list[PairAnswer]:
        """Try all pairs; a node is in one at a time. Raises `ClusterError`."""
        for pairs in rounds:
            self._run_round(list(pairs))
        return self._answers

    def _run_round(self, queue: list[Pair]) -> None:
        at_once = max(1, self._settings.verify.deep.parallel // 2)
        active: list[_Trial] = []
        while queue or active:
            late = time.monotonic() > self._until
            while queue and (late or len(active) < at_once):
                pair = queue.pop(0)
                if late:
                    self._add_answer(pair, Answer(ended="not started", reason="time was up"))
                else:
                    active.append(self._begin(pair))
            pods = self._session.pods()
            for trial in list(active):
                if (answer := self._look_at(trial, pods, late)) is not None:
                    active.remove(trial)
                    self._end(trial, answer)
            if active:
                self._session.wait(_LOOK_EVERY_S)

    def _begin(self, pair: Pair) -> _Trial:
        self._progress(f"deep: {' and '.join(pair.nodes)}: internode")
        if not self._keys_made:
            self._session.create_secret(keys())
            self._keys_made = True
        self._session.create([waiting_pod(pair, self._settings)])
        return _Trial(pair, time.monotonic())

    def _look_at(self, trial: _Trial, pods: Mapping[str, Pod], late: bool) -> Answer | None:
        """What became of a pair; None while it goes on."""
        second = pods.get(trial.pair.pod(trial.pair.second.name))
        elapsed = time.monotonic() - trial.since
        if not trial.address:
            return self._wait_for_second(trial, second, elapsed, late)
        name = trial.pair.pod(trial.pair.first.name)
        first = pods.get(name)
        if first is None:
            return _not_started(f"{self._session.loss()} (mpirun)", trial.pair.first.name)
        issue = pod_issue(first)
        state = first.container(CONTAINER).state
        if state == "terminated" or issue.failed or EXIT in self._session.log(name, CONTAINER):
            output = self._session.whole_log(name, CONTAINER)
            return finished_answer(output, issue.error, elapsed)
        if state == "running" and not trial.running:
            trial.running, trial.since = True, time.monotonic()
            return None
        if trial.running and (late or elapsed > self._pair_s):
            output = self._session.whole_log(name, CONTAINER)
            reason = f"no answer within {elapsed:.0f} s"
            return Answer(ended="hung", output=output, reason=reason, seconds=elapsed)
        if not trial.running and (
            late or elapsed > START_S or (issue := self._session.issue(first)).failed
        ):
            return _not_started(issue.error or "its pod did not start", trial.pair.first.name)
        return None

    def _wait_for_second(
        self, trial: _Trial, pod: Pod | None, elapsed: float, late: bool
    ) -> Answer | None:
        """Start mpirun once the pod with sshd runs and has an address; the answer if it fails."""
        node = trial.pair.second.name
        if pod is None:
            return _not_started(f"{self._session.loss()} (sshd)", node)
        issue = pod_issue(pod)
        state = pod.container(CONTAINER).state
        if issue.failed or state == "terminated":
            log = self._session.whole_log(trial.pair.pod(node), CONTAINER).strip()
            return _not_started(log[-200:] or issue.error or "its pod ended", node)
        if state == "running" and pod.address:
            trial.address, trial.since = pod.address, time.monotonic()
            self._session.create([running_pod(trial.pair, pod.address, self._settings)])
        elif late or elapsed > START_S or (issue := self._session.issue(pod)).failed:
            return _not_started(issue.error or "its pod did not start", node)
        return None

    def _end(self, trial: _Trial, answer: Answer) -> None:
        nodes = " and ".join(trial.pair.nodes)
        self._progress(f"deep: {nodes}: internode {answer.ended}, {answer.seconds:.0f} s")
        pods = self._session.pods()
        for node in trial.pair.nodes:
            if trial.pair.pod(node) in pods:
                self._session.delete(trial.pair.pod(node))
        self._add_answer(trial.pair, answer, trial.address)

    def _add_answer(self, pair: Pair, answer: Answer, address: str = "") -> None:
        hosts = {pair.pod(node)[:_HOST_NAME].rstrip("-."): node for node in pair.nodes}
        hosts |= {node.split(".")[0]: node for node in pair.nodes}  # of a node's own network
        hosts |= {address: pair.second.name} if address else {}
        pair_answer = PairAnswer(
            nodes=pair.nodes,
            uuids=tuple(uuid for node in pair.nodes for uuid in self._uuids[node]),
            hosts=hosts,
            gpus={pair.first.name: pair.first.gpus, pair.second.name: pair.second.gpus},
            answer=answer,
        )
        self._save(pair_answer)
        self._answers.append(pair_answer)


def _not_started(reason: str, node: str) -> Answer:
    return Answer(ended="not started", reason=f"{node}: {reason}")
