"""Cells are measured in turns, go on where they ended, and fail where the sides differ."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import machines, measure, network, runner
from bench.matrix import Cell
from bench.measure import Measured
from bench.network import Pinged
from bench.results import Results
from bench.runner import DIFFERING_LINE, RIGHT, Runner
from bench.site import Command, Outcome, Side, Site
from lab.state import Lab, LabError, Machine


class FakeSide:
    """A side that says it changed what it is told to say."""

    def __init__(self, name: str) -> None:
        self.name = self.title = name
        self.changes: list[dict[str, tuple[str, ...]]] = []
        self.repairs = True

    def command(self, site: Site, work: Path) -> Command:
        raise NotImplementedError

    def outcome(self, stdout: str, stderr: str, work: Path) -> Outcome:
        raise NotImplementedError


class World:
    """Machines that are folders, and sides that do nothing but answer."""

    def __init__(self, folder: Path) -> None:
        self.sides = {name: FakeSide(name) for name in ("gpuboot", "ansible")}
        self.results = Results(folder / "samples.jsonl", "now")
        self.commands: list[str] = []
        self.edited = folder / "edited"
        self.edited.write_text(f"{RIGHT}\n")

    def runner(self, runs: int = 2) -> Runner:
        sides: dict[str, Side] = dict(self.sides)
        return Runner(machines.plan(3), sides, self.results, runs, lambda line: None)

    def run(self, lab: Lab, controller: object, side: FakeSide, site: Site) -> Measured:
        self.commands.append(side.name)
        if side.repairs:
            self.edited.write_text(f"{RIGHT}\n")
        changed = side.changes.pop(0) if side.changes else {}
        return Measured(1.0, 0.5, 60, 0.5, 100, 50, 4, Outcome(changed, {}))

    def edit(self, lab: Lab, machine: Machine, path: str, old: str, new: str) -> None:
        self.edited.write_text(self.edited.read_text().replace(old, new))

    def timed(self) -> list[tuple[str, int]]:
        records = self.results.records()
        return [
            (record["side"], record["round"]) for record in records if record["kind"] == "sample"
        ]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    new_world = World(tmp_path)

    @contextlib.contextmanager
    def controller(lab: Lab, condition: object) -> Iterator[None]:
        yield

    def do_nothing(*args: Any) -> None:
        pass

    def site(lab: Lab, count: int) -> Site:
        return Site("bench", tmp_path, tmp_path, tmp_path, machines_of(lab, count))

    for name in ("boot", "only", "reset", "save_snapshot"):
        monkeypatch.setattr(machines, name, do_nothing)
    monkeypatch.setattr(machines, "has", lambda lab, snapshot: True)
    monkeypatch.setattr(machines, "site", site)
    monkeypatch.setattr(machines, "edit", new_world.edit)
    monkeypatch.setattr(measure, "run", new_world.run)
    monkeypatch.setattr(network, "controller", controller)
    monkeypatch.setattr(network, "ping", lambda *args: Pinged(0.2, 0.2, 0.3, 0))
    monkeypatch.setattr(Lab, "root", lambda lab, machine: tmp_path)
    monkeypatch.setattr(runner, "EDITED", "/edited")
    return new_world


def machines_of(lab: Lab, count: int) -> Any:
    return lab.machines[:count]


def test_sides_take_turns_after_each_found_nothing_to_do(world: World) -> None:
    assert world.runner().measure([Cell("nothing", 2)], None) == []
    # once to bring the machines up to date, once each to agree; then the timed ones
    assert world.commands == [
        "gpuboot",
        "gpuboot",
        "ansible",
        "gpuboot",
        "ansible",
        "ansible",
        "gpuboot",
    ]
    assert world.timed() == [("gpuboot", 0), ("ansible", 0), ("ansible", 1), ("gpuboot", 1)]


def test_what_was_measured_is_not_measured_again(world: World) -> None:
    world.runner(runs=1).measure([Cell("nothing", 1)], None)
    world.runner(runs=2).measure([Cell("nothing", 1)], None)
    assert [number for _, number in world.timed()] == [0, 0, 1, 1]
    world.commands.clear()
    world.runner(runs=2).measure([Cell("nothing", 1)], None)
    assert world.commands == []


def test_cells_beyond_the_time_budget_are_reported(world: World) -> None:
    cells = [Cell("nothing", 1), Cell("nothing", 2)]
    assert world.runner().measure(cells, 0) == cells
    assert world.timed() == []


def test_sides_that_differ_end_the_benchmark_by_name(world: World) -> None:
    world.sides["ansible"].changes = [{"node1": ("Write a file",)}]
    with pytest.raises(LabError, match=r"after gpuboot, ansible changed Write a file \(node1\)"):
        world.runner().measure([Cell("nothing", 1)], None)
    assert world.timed() == []


def test_a_change_where_nothing_was_to_do_is_no_measurement(world: World) -> None:
    world.sides["ansible"].changes = [{}, {"node1": ("Write a file",)}]
    with pytest.raises(LabError, match="changed what needed no change"):
        world.runner().measure([Cell("nothing", 1)], None)
    assert world.timed() == [("gpuboot", 0)]


@pytest.mark.parametrize(("repairs", "message"), [(True, "changed nothing on"), (False, "left")])
def test_the_edited_line_must_be_put_back_and_told(
    world: World, repairs: bool, message: str
) -> None:
    side = world.sides["gpuboot"]
    side.repairs = repairs
    # the first two runs are those before anything is timed
    side.changes = [{}, {}, {} if repairs else {"node1": ("Configure sysctls",)}]
    with pytest.raises(LabError, match=message):
        world.runner(runs=1).measure([Cell("line", 1)], None)
    assert (DIFFERING_LINE in world.edited.read_text()) != repairs
