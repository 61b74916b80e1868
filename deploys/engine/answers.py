"""What hosts have answered in this run, so that nothing is asked twice while nothing has changed.

Operations read facts by `read`. By itself that is `host.get_fact`. In a run that has compared its
operations with the hosts (deploys/engine/compare.py) an answer is kept until a command runs on its
host; one about the cluster until a command runs anywhere. What comes next on a host is then read
again in one command, up to the next operation that is known to change something.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gevent.local import local
from gevent.pool import Pool
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import FactBase, get_fact
from pyinfra.api.host import Host
from pyinfra.context import ctx_host, state

from deploys.engine.batch import Batch, Request, Unanswered, parts
from deploys.engine.current_host import current_host
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.drain_rehearsal import PlannedDrain

T = TypeVar("T")
# answers of hosts, by what each is asked; `Unanswered` where one could not answer
AnswerSource = Callable[[Sequence[tuple[Host, Request]]], list[Any]]

_MAX_AT_ONCE = 32
_CURL = re.compile(r"curl: \(\d+\).*")
# seconds that answers hold while nothing has changed: a person may think about a plan for longer
_FRESH_S = 60.0


class WouldChange(BaseException):
    """The operation that is compared has something to do. Not an error: no handler may catch it."""


@dataclass(eq=False)
class Step:
    """An operation on one host.

    + differs: whether it has something to do, as far as the comparison could tell
    + has_message: whether it has something to tell
    + requests: what it read, each with the inventory name of the host that answered
    + packages, sources: what it installs, and repositories (`deploys.engine.planned_packages`)
    + drains: nodes that it drains (`deploys.engine.planned_drains`)
    """

    differs: bool = False
    has_message: bool = False
    requests: list[tuple[str, Request]] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)
    drains: dict[str, PlannedDrain] = field(default_factory=dict)

    @property
    def of_cluster(self) -> bool:
        """Whether it depends on what other hosts change as well."""
        return len({host for host, _ in self.requests}) > 1 or any(
            request.fact.of_cluster for _, request in self.requests
        )


@dataclass
class HostAnswers:
    """What one host has answered, and its operations in the order of the deploy.

    + read_at: when the oldest of them was read, in seconds of `time.monotonic()`
    + place: of the operation that executes
    + forgotten: how often the answers have been forgotten
    """

    cache: dict[Request, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    read_at: float = 0.0
    place: int = 0
    forgotten: int = 0

    def answer(self, request: Request) -> Any:
        """What is known; `Unanswered` where nothing is."""
        return self.cache.get(request, Unanswered("nobody has asked"))

    def add(self, answers: Mapping[Request, Any]) -> None:
        """Add answers to those that are known."""
        if not self.cache:
            self.read_at = time.monotonic()
        self.cache |= answers


@dataclass
class _Comparing:
    step: Step
    fetch_answers: AnswerSource


_hosts: dict[str, HostAnswers] = {}
_cluster = HostAnswers()  # only how often what the cluster has was forgotten
_greenlet = local()  # comparing, live: of this greenlet


def begin() -> None:
    """Keep answers from now on, and forget those of an earlier run."""
    _hosts.clear()
    _hosts.update({host.name: HostAnswers() for host in state.inventory})


def keeping() -> bool:
    """Whether answers are kept: a plan may then ask what has been compared."""
    return bool(_hosts)


def of(target: Host) -> HostAnswers:
    """What is kept of a host, since `begin`."""
    return _hosts[target.name]


@contextmanager
def comparison(step: Step, source: AnswerSource) -> Iterator[None]:
    """Compare an operation in the block, by this greenlet; its reads go to `source`."""
    _greenlet.comparing = _Comparing(step, source)
    try:
        yield
    finally:
        _greenlet.comparing = None


def compared_step() -> Step | None:
    """The operation that this greenlet compares; None while it compares none."""
    return current.step if (current := _comparing()) else None


def comparing() -> bool:
    """Whether this greenlet finds out if an operation has something to do; nothing may change."""
    return _comparing() is not None


def mark_message() -> None:
    """The operation that is compared has something to tell, so the run must come to it."""
    if step := compared_step():
        step.has_message = True


def _comparing() -> _Comparing | None:
    return getattr(_greenlet, "comparing", None)


@contextmanager
def live() -> Iterator[None]:
    """Have this greenlet's reads ask the hosts in the block: for waiting until they change."""
    before, _greenlet.live = _is_live(), True
    try:
        yield
    finally:
        _greenlet.live = before


def _is_live() -> bool:
    return bool(getattr(_greenlet, "live", None))


def read(fact: type[FactBase[T]], **arguments: Any) -> T:
    """A fact of the current host, as `host.get_fact` has it."""
    target: Host = ctx_host.get()  # type: ignore[no-untyped-call]
    return read_from(target, fact, **arguments)


def read_from(target: Host, fact: type[FactBase[T]], **arguments: Any) -> T:
    """A fact of any host of the inventory, which the caller has made the context's host."""
    request = Request.of(fact, arguments)
    host_answers = _hosts.get(target.name)
    if host_answers is None or request is None or _is_live():
        direct_answer: T = target.get_fact(fact, **arguments)
        return direct_answer
    comparison = _comparing()
    answer: T = (
        _compared(comparison, target, request)
        if comparison
        else _cached_answer(target, host_answers, request)
    )
    return answer


def foresee(questions: Iterable[tuple[Host, type[FactBase[Any]], dict[str, Any]]]) -> None:
    """Read now what the compared operation is going to read, each host by one command."""
    if comparison := _comparing():
        requests = [
            (state.inventory.get_host(target.name), Request.of(fact, arguments))
            for target, fact, arguments in questions
        ]
        comparison.fetch_answers([(target, request) for target, request in requests if request])


def read_each(fact: type[FactBase[T]], arguments: Mapping[Host, Mapping[str, Any]]) -> list[T]:
    """A fact of several hosts at once, each with arguments of its own."""
    requests = [
        (target, Request.of(fact, dict(host_arguments)))
        for target, host_arguments in arguments.items()
    ]
    host_requests = [(target, request) for target, request in requests if request]
    comparison = None if _is_live() else _comparing()
    answers = (
        comparison.fetch_answers(host_requests)
        if comparison
        else [Unanswered()] * len(host_requests)
    )

    def resolve(number: int) -> T:
        target, request = host_requests[number]
        answer: T | Unanswered = answers[number]
        if not isinstance(answer, Unanswered):
            return answer
        with current_host(target):  # asked alone, it says itself what is wrong
            value: T = get_fact(state, target, fact, kwargs=dict(request.arguments))
            return value

    return list(Pool(_MAX_AT_ONCE).map(resolve, range(len(host_requests))))


def _compared(comparison: _Comparing, target: Host, request: Request) -> Any:
    if request.fact.of_plan:  # nobody asks for them who has found no difference
        raise WouldChange
    comparison.step.requests.append((target.name, request))
    [answer] = comparison.fetch_answers([(target, request)])
    if isinstance(answer, Unanswered) or getattr(answer, "error", None):
        raise WouldChange
    return answer


def _cached_answer(target: Host, host_answers: HostAnswers, request: Request) -> Any:
    if state.is_executing and time.monotonic() - host_answers.read_at > _FRESH_S:
        host_answers.cache.clear()
    if not isinstance(answer := host_answers.answer(request), Unanswered):
        return answer
    silence = _CURL.search(str(answer)) if request.fact.of_cluster else None
    if silence and not state.is_executing:  # the API server was asked a moment ago
        raise ClusterError(silence[0])
    before = host_answers.forgotten, _cluster.forgotten
    answers = fetch_answers(target, _upcoming_requests(target, host_answers, request))
    if isinstance(answers[request], Unanswered):  # asked alone, it says itself what is wrong
        answers[request] = target.get_fact(request.fact, **dict(request.arguments))
    # what other operations have changed meanwhile, on their hosts, may not be in these answers
    if before == (host_answers.forgotten, _cluster.forgotten):
        host_answers.add(answers)
    return answers[request]


def _upcoming_requests(target: Host, host_answers: HostAnswers, request: Request) -> list[Request]:
    """What is asked now, and what the operations that follow will ask of the same host."""
    requests = {request: None}
    if state.is_executing:
        for step in host_answers.steps[host_answers.place :]:
            requests |= {item: None for name, item in step.requests if name == target.name}
            if step.differs:
                break
    return [item for item in requests if isinstance(host_answers.answer(item), Unanswered)]


def fetch_answers(target: Host, requests: Sequence[Request]) -> dict[Request, Any]:
    """The answers of a host, by one command; `Unanswered` for each that failed."""
    answers: dict[Request, Any] = {}
    with current_host(target):
        for part in parts(requests):
            try:
                values = get_fact(
                    state, target, Batch, kwargs={"requests": part}, apply_failed_hosts=False
                )
            except PyinfraError as error:
                values = [Unanswered(str(error))] * len(part)
            missing = [Unanswered("the host did not answer")] * (len(part) - len(values))
            answers |= zip(part, [*values, *missing], strict=True)
    return answers


def reached(target: Host, place: int) -> None:
    """Note that the run has come to this operation of a host."""
    if host_answers := _hosts.get(target.name):
        host_answers.place = place


def forget(target: Host) -> None:
    """Forget a host's answers, and the cluster's: a command runs on it, and may change both."""
    if host_answers := _hosts.get(target.name):
        host_answers.cache.clear()
        host_answers.forgotten += 1
    forget_cluster()


def forget_cluster() -> None:
    """Forget what is known of the cluster: something may have changed there."""
    _cluster.forgotten += 1
    for host_answers in _hosts.values():
        for request in [item for item in host_answers.cache if item.fact.of_cluster]:
            del host_answers.cache[request]
