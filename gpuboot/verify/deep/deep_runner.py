"""Runs the tests of the level `deep`: some nodes at once, on each one test after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from gpuboot.cluster.api import Cluster
from gpuboot.cluster.objects import read_nodes
from gpuboot.cluster.pods import Pod, read_holders
from gpuboot.config.settings import Settings
from gpuboot.verify.deep import deep_plan as plans_of
from gpuboot.verify.deep import pairs as pairs_of
from gpuboot.verify.deep import resume
from gpuboot.verify.deep.deep_answers import (
    EXIT,
    Answer,
    DeepAnswers,
    NodeAnswers,
    PairAnswer,
    Step,
)
from gpuboot.verify.deep.deep_answers import finished_answer as ended_with
from gpuboot.verify.deep.deep_plan import CONTAINER, START_S, Plan
from gpuboot.verify.deep.pair_runner import PairRunner
from gpuboot.verify.deep.pairs import Pair
from gpuboot.verify.devices import Host
from gpuboot.verify.pod_results import listed_devices, pod_issue
from gpuboot.verify.session import Session, pod_name

_LOOK_EVERY_S = 2.0
_SAMPLE_EVERY_S = 10.0
_PROGRESS_EVERY_S = 60.0

Progress = Callable[[str], None]
Sampler = Callable[[str], str]  # what nvidia-smi says on a node, by its name; "": no answer
Save = Callable[[NodeAnswers | PairAnswer], None]


@dataclass
class _Trial:
    """A node and the test that it is at.

    + requested_at, running_at: monotonic seconds; running_at: when its container was seen to run
    """

    plan: Plan
    waiting: list[Step]
    step: Step
    requested_at: float
    running_at: float | None = None
    answers: NodeAnswers = field(default_factory=lambda: NodeAnswers(node=""))

    @property
    def pod(self) -> str:
        return pod_name(self.step, self.plan.name)


def run_tests(
    cluster: Cluster,
    hosts: Sequence[Host],
    settings: Settings,
    progress: Progress,
    sample: Sampler,
    save: Save,
    earlier: DeepAnswers,
) -> DeepAnswers:
    """Test every node that no pod uses, then pairs of them. Nothing of others is evicted.

    + sample: asks nvidia-smi on a node, while its tests run
    + save: keeps what was found on a node or between two, once its tests have ended
    + earlier: what an earlier run kept; it is not tried again where it still holds

    Removes what it made however it ends; a next verification removes what a killed one left.
    Raises `ClusterError`.
    """
    until = time.monotonic() + settings.verify.deep.total_timeout_s
    session = Session(cluster, progress, settings.verify.deep.timeout_s)
    with ThreadPoolExecutor(settings.verify.deep.parallel) as pool:
        runner = _Runner(session, pool, settings, progress, sample, save, until)
        try:
            blocked = session.begin(settings.verify.timeout_s)
            plans = _plans(cluster, hosts, settings)  # without what a killed one had left
            if blocked:
                plans = [replace(item, node=None, skipped=blocked) for item in plans]
            still = resume.holding(earlier, hosts, settings)
            for answer in still.nodes.values():
                progress(f"deep: {answer.node}: tested before, not again")
            tested = runner.run([item for item in plans if item.name not in still.nodes])
            nodes = {answer.node: answer for answer in [*still.nodes.values(), *tested]}
            fit = [item for item in plans if item.node and not nodes[item.name].hangs]
            uuids = {host.node: sorted(host.uuids) for host in hosts}
            pairs = PairRunner(session, settings, progress, save, uuids, until)
            pending = _pending_pairs(fit, still, settings)
            pair_answers = {answer.nodes: answer for answer in pairs.run(pending)}
            return DeepAnswers(nodes=nodes, pairs={**still.pairs, **pair_answers})
        finally:
            session.close()


def _plans(cluster: Cluster, hosts: Sequence[Host], settings: Settings) -> list[Plan]:
    """What can be done on each node, as the cluster is now."""
    return plans_of.plans(hosts, read_nodes(cluster), read_holders(cluster), settings)


def _pending_pairs(fit: Sequence[Plan], still: DeepAnswers, settings: Settings) -> list[list[Pair]]:
    """The pairs to try, round by round."""
    if settings.verify.deep.internode.image is None:
        return []
    rounds = pairs_of.rounds(fit)
    return [[pair for pair in pairs if pair.nodes not in still.pairs] for pairs in rounds]


class _Runner:
    def __init__(
        self,
        session: Session,
        pool: ThreadPoolExecutor,
        settings: Settings,
        progress: Progress,
        sample: Sampler,
        save: Save,
        until: float,
    ) -> None:
        self._session = session
        self._pool = pool
        self._settings = settings
        self._deep = settings.verify.deep
        self._progress = progress
        self._sample = sample
        self._save = save
        self._until = until
        self._answers: list[NodeAnswers] = []
        self._active: list[_Trial] = []
        self._sampling: dict[str, Future[str]] = {}
        self._sampled_at: dict[str, float] = {}

    def run(self, plans: Sequence[Plan]) -> list[NodeAnswers]:
        """Test the nodes until every one has ended, or the time for all of them is up."""
        self._answers = [
            NodeAnswers(node=item.name, skipped=item.skipped) for item in plans if item.skipped
        ]
        queue = [item for item in plans if not item.skipped]
        total, reported_at = len(queue), 0.0
        while queue or self._active:
            late = time.monotonic() > self._until
            while queue and not late and len(self._active) < self._deep.parallel:
                self._begin(queue.pop(0))
            pods = self._session.pods()
            for trial in list(self._active):
                self._look_at(trial, pods.get(trial.pod), late)
            if late:
                self._give_up(queue)
            if time.monotonic() - reported_at > _PROGRESS_EVERY_S:
                self._report(total, len(queue))
                reported_at = time.monotonic()
            if self._active:
                self._session.wait(_LOOK_EVERY_S)
        return self._answers

    def _begin(self, plan: Plan) -> None:
        answers = NodeAnswers(node=plan.name, steps=dict(plan.left_out))
        first, *waiting = plan.steps
        self._active.append(_Trial(plan, waiting, first, 0.0, answers=answers))
        self._start(self._active[-1])

    def _start(self, trial: _Trial) -> None:
        self._progress(f"deep: {trial.plan.name}: {trial.step}")
        self._session.create([plans_of.pod(trial.plan, trial.step, self._settings)])
        trial.requested_at, trial.running_at = time.monotonic(), None

    def _look_at(self, trial: _Trial, pod: Pod | None, late: bool) -> None:
        if pod and pod.container(CONTAINER).state == "running":
            trial.running_at = trial.running_at or time.monotonic()
            self._take_sample(trial)
        answer = self._answer(trial, pod, late)
        if answer is None:
            return
        self._progress(
            f"deep: {trial.plan.name}: {trial.step} {answer.ended}, {answer.seconds:.0f} s"
        )
        listed_uuids = listed_devices(answer.output)
        trial.answers = replace(
            trial.answers,
            steps={**trial.answers.steps, trial.step: answer},
            uuids=trial.answers.uuids or listed_uuids,
        )
        if pod is not None:
            self._session.delete(trial.pod)
        if trial.waiting and not late:
            trial.step = trial.waiting.pop(0)
            self._start(trial)
        else:
            self._end(trial)

    def _answer(self, trial: _Trial, pod: Pod | None, late: bool) -> Answer | None:
        """What became of a test; None while it goes on."""
        now = time.monotonic()
        elapsed = now - (trial.running_at or trial.requested_at)
        if pod is None:
            return Answer(ended="not started", reason=self._session.loss(), seconds=elapsed)
        output = self._session.log(trial.pod, CONTAINER)
        issue = pod_issue(pod)
        is_terminated = pod.container(CONTAINER).state == "terminated"
        if is_terminated or issue.failed or EXIT in output:
            output = self._session.whole_log(trial.pod, CONTAINER)
            return ended_with(output, issue.error, elapsed)
        if trial.running_at and (late or elapsed > self._deep.timeout_s):
            reason = f"no answer within {elapsed:.0f} s"
            return Answer(ended="hung", output=output, reason=reason, seconds=elapsed)
        if not trial.running_at and (
            late or elapsed > START_S or (issue := self._session.issue(pod)).failed
        ):
            reason = issue.error or "its pod did not start in time"
            return Answer(ended="not started", reason=reason, seconds=elapsed)
        return None

    def _take_sample(self, trial: _Trial) -> None:
        """Ask nvidia-smi on the node, beside everything else: a host may take long to answer."""
        name, now = trial.plan.name, time.monotonic()
        if (future := self._sampling.get(name)) is not None:
            if not future.done():
                return
            del self._sampling[name]
            trial.answers = replace(
                trial.answers, samples=f"{trial.answers.samples}{future.result()}\n"
            )
        if now - self._sampled_at.get(name, -_SAMPLE_EVERY_S) >= _SAMPLE_EVERY_S:
            self._sampled_at[name] = now
            self._sampling[name] = self._pool.submit(self._sample, name)

    def _end(self, trial: _Trial) -> None:
        self._active.remove(trial)
        unstarted = dict.fromkeys(trial.waiting, Answer(ended="not started", reason="time was up"))
        answers = replace(trial.answers, steps={**trial.answers.steps, **unstarted})
        self._save(answers)
        self._answers.append(answers)

    def _give_up(self, queue: list[Plan]) -> None:
        reason = f"the time for all nodes ({self._deep.total_timeout_s} s) was up"
        self._answers += [NodeAnswers(node=item.name, skipped=reason) for item in queue]
        queue.clear()

    def _report(self, total: int, queued: int) -> None:
        at = ", ".join(f"{item.plan.name} ({item.step})" for item in self._active)
        finished = total - queued - len(self._active)
        self._progress(f"deep: {finished} of {total} nodes ended; at work: {at or 'none'}")
