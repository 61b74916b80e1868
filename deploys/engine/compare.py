"""Compares all operations of a deploy with the hosts before pyinfra prepares any of them.

The deploy is called once for every host. Each of its operations goes on in a greenlet of its own
until it asks for a fact; when none can go on without an answer, every host is asked once for all
that is wanted of it. Operations that turn out to have nothing to do are not handed to pyinfra, as
long as nothing before them in this run can change what they compared.
"""

from __future__ import annotations

import runpy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gevent
from gevent.event import AsyncResult, Event
from gevent.local import local
from gevent.pool import Pool
from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.context import host, state

from deploys.engine import answers, operation, order
from deploys.engine.answers import Step, WouldChange
from deploys.engine.batch import Request
from deploys.engine.current_host import current_host
from deploys.engine.operation import Body
from deploys.engine.planned_packages import PlannedPackages
from deploys.engine.spans import span
from gpuboot.cluster.drain_rehearsal import PlannedDrain

Title = tuple[str, str, int]  # phase, name, and how many of that name came before

_MAX_AT_ONCE = 32


class Reader:
    """Runs greenlets that ask hosts, and asks each host for many of them at once."""

    def __init__(self) -> None:
        self._running = 0
        self._pending: list[tuple[Sequence[tuple[Host, Request]], AsyncResult]] = []
        self._idle_event = Event()

    def spawn(self, function: Callable[..., None], *args: Any) -> None:
        """Run a function, which raises nothing, in a greenlet that may call `fetch_answers`."""
        self._running += 1
        gevent.spawn(self._run, function, *args)

    def _run(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        finally:
            self._finish_one()

    def _finish_one(self) -> None:
        self._running -= 1
        if not self._running:
            self._idle_event.set()

    def fetch_answers(self, requests: Sequence[tuple[Host, Request]]) -> list[Any]:
        """The answers to requests, together with those of the other greenlets."""
        if any(request not in answers.of(target).cache for target, request in requests):
            result = AsyncResult()
            self._pending.append((requests, result))
            self._finish_one()
            result.get()
        return [answers.of(target).cache[request] for target, request in requests]

    def join(self) -> None:
        """Wait until all greenlets have ended, reading what they ask for."""
        while True:
            self._idle_event.wait()
            self._idle_event.clear()
            pending, self._pending = self._pending, []
            if not pending:
                return
            missing_requests: dict[Host, dict[Request, None]] = defaultdict(dict)
            for requests, _ in pending:
                for target, request in requests:
                    if request not in answers.of(target).cache:
                        missing_requests[target][request] = None
            Pool(_MAX_AT_ONCE).map(_read, missing_requests.items())
            self._running += len(pending)
            for _, result in pending:
                result.set()


def _read(item: tuple[Host, Mapping[Request, None]]) -> None:
    target, requests = item
    with span("compare", target.name):
        answers.of(target).add(answers.fetch_answers(target, list(requests)))


@dataclass
class _Calls:
    """The operations of one host, as the deploy calls them."""

    titles: dict[Title, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    call_counts: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    phase: str = ""
    first: int | None = None  # the first one that has something to do

    def title(self, phase: str, name: str) -> Title:
        number = self.call_counts[phase, name]
        self.call_counts[phase, name] += 1
        return phase, name, number


class Comparison:
    """The comparison of a run; `deploys.engine.operation` asks it about every operation."""

    def __init__(self) -> None:
        # operations that have nothing to do -> inventory names of those hosts
        self.unchanged: dict[Title, list[str]] = defaultdict(list)
        self.called_titles: set[Title] = set()  # operations that some host is left with
        self.reader = Reader()
        self._collected: dict[str, _Calls] = {}
        self._calls_by_title: dict[str, _Calls] = defaultdict(_Calls)
        self._complete_hosts: set[str] = set()  # hosts whose operations are all known
        self._dirty = False
        self._greenlet = local()

    def collect(self, target: Host, deploy: str) -> None:
        """Call a deploy for a host, and compare each of its operations."""
        calls = self._greenlet.calls = self._collected[target.name] = _Calls()
        with current_host(target):
            try:
                runpy.run_path(deploy, run_name="compare")
                self._complete_hosts.add(target.name)
            except Exception as error:
                # whatever it is comes again when pyinfra prepares, and is told there
                logger.debug("comparing %s ended early: %r", target.name, error)
        answers.of(target).steps = calls.steps

    def collecting(self) -> bool:
        """Whether this greenlet calls a deploy only to compare it."""
        return getattr(self._greenlet, "calls", None) is not None

    def finish(self) -> None:
        """Decide, once all operations have been compared."""
        for name, calls in self._collected.items():
            differing = {place for place, step in enumerate(calls.steps) if step.differs}
            calls.first = min(differing, default=None)
            if differing:
                titles = [title for title, place in calls.titles.items() if place in differing]
                logger.debug("compared %s: %s differ", name, titles)
        self._dirty = self._complete_hosts != set(self._collected) or any(
            calls.first is not None for calls in self._collected.values()
        )

    @property
    def differs(self) -> bool:
        """Whether an operation has something to do, on any host, as far as is known."""
        return self._dirty

    def planned(self) -> dict[str, PlannedPackages]:
        """What operations install: inventory names of hosts that lack packages -> these."""
        packages_by_host = {}
        for name, calls in self._collected.items():
            planned = packages_by_host[name] = PlannedPackages()
            for step in calls.steps:
                planned.packages.update(step.packages)
                planned.sources.update(step.sources)
        return {name: planned for name, planned in packages_by_host.items() if planned.packages}

    def drains(self) -> dict[str, PlannedDrain]:
        """Drains that operations make: name of the node in Kubernetes -> how."""
        steps = [step for calls in self._collected.values() for step in calls.steps]
        drains = [item for step in steps for item in step.drains.items()]
        return dict(sorted(drains, key=lambda item: item[1].shares))

    def note(
        self, body: Body[Any] | None, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> bool:
        if not self.collecting():
            return False
        calls: _Calls = self._greenlet.calls
        step = Step()
        calls.titles[calls.title(calls.phase or host.current_deploy_name or "", name)] = len(
            calls.steps
        )
        calls.steps.append(step)
        if body is None:
            step.has_message = True
            return True
        arguments = {key: value for key, value in kwargs.items() if key != "name" and key[0] != "_"}
        target = state.inventory.get_host(host.name)
        self.reader.spawn(self._compare, target, step, lambda: body(*args, **arguments))
        return True

    def _compare(self, target: Host, step: Step, begin: Callable[[], Any]) -> None:
        with current_host(target), answers.comparison(step, self.reader.fetch_answers):
            try:
                for _ in begin():
                    step.differs = True
                    break
            except WouldChange:
                step.differs = True
            except Exception as error:
                logger.debug("comparing on %s failed: %r", target.name, error)
                step.differs = True

    def place(self, name: str) -> int | None:
        title = self._calls_by_title[host.name].title(host.current_deploy_name or "", name)
        calls = self._collected.get(host.name)
        if calls is None or title not in calls.titles:
            self._dirty = True
            self.called_titles.add(title)
            return len(calls.steps) if calls else 0
        place = calls.titles[title]
        if self._has_to_run(calls, place):
            self.called_titles.add(title)
            return place
        self.unchanged[title].append(host.name)
        return None

    @contextmanager
    def within(self, phase: str) -> Iterator[None]:
        calls: _Calls = self._greenlet.calls
        calls.phase = phase
        try:
            yield
        finally:
            calls.phase = ""

    def idle(self, phase: str) -> bool:
        if host.name not in self._complete_hosts:
            return False
        calls = self._collected[host.name]
        titles = {title: place for title, place in calls.titles.items() if title[0] == phase}
        if any(self._has_to_run(calls, place) for place in titles.values()):
            return False
        for title in titles:
            self.unchanged[title].append(host.name)
        return True

    def _has_to_run(self, calls: _Calls, place: int) -> bool:
        step = calls.steps[place]
        after = calls.first is not None and place > calls.first
        return step.differs or step.has_message or after or (step.of_cluster and self._dirty)


def compare(preflight: Callable[[], None], deploy: str) -> None:
    """Run preflight, and compare the operations of a deploy, all at once.

    + preflight: reads by `deploys.engine.answers` as well, and raises what ends the run
    + deploy: its file, which is called once more for every host; "": there is only preflight
    """
    answers.begin()
    order.install(state)
    comparison = operation.comparison = Comparison()
    failed: list[BaseException] = []

    def judge() -> None:
        with answers.comparison(Step(), comparison.reader.fetch_answers):
            try:
                preflight()
            except BaseException as error:
                failed.append(error)

    comparison.reader.spawn(judge)
    if deploy:
        for target in state.inventory.get_active_hosts():
            comparison.reader.spawn(comparison.collect, target, deploy)
    with span("compare"):
        comparison.reader.join()
    comparison.finish()
    if failed:
        raise failed[0]


def left_out() -> int:
    """Number of operations that no host of this run is left with."""
    comparison = current()
    return len(comparison.unchanged.keys() - comparison.called_titles) if comparison else 0


def current() -> Comparison | None:
    """The comparison of this run; None for a run without one."""
    comparison = operation.comparison
    return comparison if isinstance(comparison, Comparison) else None


def collecting() -> bool:
    """Whether a deploy is called only to compare its operations."""
    comparison = current()
    return comparison is not None and comparison.collecting()
