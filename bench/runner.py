"""Measures cells: prepares the machines, checks that the sides agree, and times them in turn."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from bench import machines, measure, network
from bench.machines import DELIVERED
from bench.matrix import LAN, Cell, turns
from bench.measure import Measured
from bench.network import CONDITIONS, Controller
from bench.results import Results
from bench.site import Side, Site
from lab.build.progress import Progress, duration
from lab.state import Lab, LabError

# the changed line: as a person might have edited the file since the last run
EDITED = "/etc/sysctl.d/99-zz-gpuboot.conf"
RIGHT = "fs.inotify.max_user_watches = 524288"
DIFFERING_LINE = "fs.inotify.max_user_watches = 524287"


@dataclass
class Runner:
    """Measures cells on the machines of a lab. + runs: of each side in each cell"""

    lab: Lab
    sides: Mapping[str, Side]
    results: Results
    runs: int
    say: Progress
    equal: set[int] = field(default_factory=set)  # sites whose sides agree since their last change

    def measure(self, cells: Sequence[Cell], budget_s: float | None) -> list[Cell]:
        """Measure the cells that are not finished; returns those that no time was left for.

        + budget_s: no cell is begun later than this; None: all are measured
        """
        remaining = [c for c in cells if self.results.rounds(c, list(self.sides)) < self.runs]
        self.say(f"{len(remaining)} cells to measure; {len(cells) - len(remaining)} are there")
        if remaining:
            self._converge_by_each_side()
        started = time.monotonic()
        while remaining and (budget_s is None or time.monotonic() - started < budget_s):
            cell, start = remaining[0], time.monotonic()
            self.say(f"{cell}: {cell.title}")
            self._cell(cell)
            self.say(f"{cell}: {duration(time.monotonic() - start)}")
            remaining.pop(0)
        return remaining

    def _cell(self, cell: Cell) -> None:
        site = machines.site(self.lab, cell.hosts)
        if cell.scenario == "fresh":
            machines.only(self.lab, cell.hosts)
            self._deliver_anew(site)  # none may be up yet, and the link is measured first
            self.equal.clear()
        else:
            self._prepare(site)
        with network.controller(self.lab, CONDITIONS[cell.network]) as controller:
            self._ping(cell, controller)
            for number in range(self.results.rounds(cell, list(self.sides)), self.runs):
                for name in turns(list(self.sides), number):
                    self._sample(cell, site, controller, self.sides[name], number)

    def _ping(self, cell: Cell, controller: Controller) -> None:
        count = 400 if CONDITIONS[cell.network].loss_percent else 20
        pinged = network.ping(self.lab, self.lab.machines[0], controller, count)
        self.results.append("ping", cell=str(cell), **asdict(pinged))

    def _sample(
        self, cell: Cell, site: Site, controller: Controller, side: Side, number: int
    ) -> None:
        if cell.scenario == "fresh":
            self._deliver_anew(site)
        if cell.scenario == "line":
            for machine in self.lab.machines[: cell.hosts]:
                machines.edit(self.lab, machine, EDITED, RIGHT, DIFFERING_LINE)
        measured = measure.run(self.lab, controller, side, site)
        self._check(cell, site, side, measured)
        values = {key: value for key, value in asdict(measured).items() if key != "outcome"}
        changes = sum(map(len, measured.outcome.changed.values()))
        self.results.append(
            "sample", cell=str(cell), side=side.name, round=number, changes=changes, **values
        )
        self.say(f"{cell}: {side.name} {number + 1}/{self.runs}: {measured.seconds:.2f} s")

    def _deliver_anew(self, site: Site) -> None:
        machines.reset(self.lab, self.lab.machines[: len(site.hosts)], DELIVERED, lambda line: None)
        for side in self.sides.values():
            work = measure.work_folder(site, side)
            if work.exists():
                shutil.rmtree(work)

    def _check(self, cell: Cell, site: Site, side: Side, measured: Measured) -> None:
        """Raise `LabError` when the side did not do what the scenario is."""
        if cell.scenario == "nothing" and (difference := measure.difference(measured.outcome)):
            raise LabError(f"{side.title} changed what needed no change: {difference}")
        untouched = {host.name for host in site.hosts} - set(measured.outcome.changed)
        if cell.scenario != "nothing" and untouched:
            raise LabError(
                f"{side.title} says it changed nothing on {', '.join(sorted(untouched))}"
            )
        if cell.scenario == "line":
            for machine in self.lab.machines[: cell.hosts]:
                lines = (self.lab.root(machine) / EDITED.lstrip("/")).read_text().splitlines()
                if RIGHT not in lines or DIFFERING_LINE in lines:
                    raise LabError(f"{side.title} left {EDITED} of {machine.name} as it was edited")

    def _prepare(self, site: Site) -> None:
        """Boot machines on which every side finds nothing to do; all caches are warm then."""
        count = len(site.hosts)
        machines.boot(self.lab, count, self._converged, self.say)
        if count in self.equal:
            return
        self.equal.clear()  # what this site is told of its hosts stands on machines of the others
        first = next(iter(self.sides.values()))
        with network.controller(self.lab, CONDITIONS[LAN]) as controller:
            measure.run(self.lab, controller, first, site)
            self._agree(site, first.name, controller)
        self.equal.add(count)

    def _agree(self, site: Site, after: str, controller: Controller) -> None:
        """Raise `LabError` when a side finds something to change after the side `after` ran."""
        for side in self.sides.values():
            measured = measure.run(self.lab, controller, side, site)
            difference = measure.difference(measured.outcome)
            hosts = len(site.hosts)
            self.results.append(
                "equality", hosts=hosts, after=after, by=side.name, changed=difference
            )
            if difference:
                before = self.sides[after].title
                raise LabError(
                    f"the sides differ: after {before}, {side.title} changed {difference}"
                )

    def _converge_by_each_side(self) -> None:
        """Have every side make the same of delivered machines, and keep the result to copy it.

        One machine of each role is converged by each side, and every other side must find nothing
        to change there. What the first side made is kept, so that not each of many machines has
        to be converged by itself.
        """
        if machines.has(self.lab, self._converged):
            return
        site = machines.site(self.lab, 2)
        for side in reversed(list(self.sides.values())):
            self.say(f"{side.title} converges a machine of each role; the others have to agree")
            self._deliver_anew(site)
            with network.controller(self.lab, CONDITIONS[LAN]) as controller:
                measure.run(self.lab, controller, side, site)
                self._agree(site, side.name, controller)
        machines.save_snapshot(self.lab, self.lab.machines[:2], self._converged)

    @property
    def _converged(self) -> str:
        """The snapshot that the code which is measured now made."""
        return converged(self.results)


def converged(results: Results) -> str:
    """The snapshot of machines on which the code that is measured now has nothing to do."""
    return f"converged-{results.code}"
