"""The `scripts/bench` command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from bench import machines, measure, network, report, tables, whole_site
from bench.data import Data
from bench.growth import measure as growth
from bench.growth import page as growth_page
from bench.matrix import DEFAULT, GPUBOOT_ONLY, parse
from bench.matrix import full as every_cell
from bench.results import SAMPLES_FILE, Results
from bench.runner import Runner
from bench.sides import SIDES
from bench.statistics import ENOUGH_RUNS
from lab import state
from lab.build.progress import Progress
from lab.cli_up import progress
from lab.state import LabError

app = typer.Typer(
    add_completion=False,
    help="gpuboot beside Ansible and plain pyinfra, on light machines. Without a command: all.",
)
light = typer.Typer(add_completion=False, help="The light machines by themselves.")
app.add_typer(light, name="machines")


@light.command()
def up(count: int) -> None:
    """Boot the first COUNT machines."""
    log = progress()
    lab = machines.ensure(log)
    machines.boot(lab, count, machines.DELIVERED, log)
    for machine in lab.machines[:count]:
        print(f"{machine.name} {machine.address}")
    total = machines.memory_mib(lab, count)
    log(f"memory: {sum(total.values()):.0f} MiB in all, {max(total.values()):.0f} at most")


@light.command("fresh")
def reset_machines(count: int) -> None:
    """Put the first COUNT machines back to how they are delivered."""
    log = progress()
    lab = machines.ensure(log)
    machines.reset(lab, lab.machines[:count], machines.DELIVERED, log)


@light.command()
def down() -> None:
    """Remove the machines, their mirror and network."""
    if machines.NAME in {lab.name for lab in state.labs()}:
        machines.down(state.load(machines.NAME), progress())


_RESULTS = Path("reports/bench")
_CELLS_FILE = "cells.jsonl"
_Folder = Annotated[Path, typer.Option("--results", help="Folder of the raw data.")]
_GROWTH_MINUTES = 5


@contextlib.contextmanager
def _interruptible(log: Progress) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        log("interrupted; what was measured is kept, and the same command goes on from here")
        raise typer.Exit(130) from None


@app.command("all")
def measure_all(folder: _Folder = _RESULTS) -> None:
    """Measure all that docs/performance.md shows, where it is not measured already."""
    log, results = progress(), Results.at(folder)
    with _interruptible(log):
        lab = machines.ensure(log)
        results.begin()
        Runner(lab, SIDES, results, ENOUGH_RUNS, log).measure(DEFAULT, None)
        gpuboot_only = {"gpuboot": SIDES["gpuboot"]}
        for cell, runs in GPUBOOT_ONLY.items():
            Runner(lab, gpuboot_only, results, runs, log).measure([cell], None)
        growth.measure(
            lab, Results.at(folder, growth_page.FILE), growth.SIZES, _GROWTH_MINUTES * 60, log
        )
        machines.down(lab, log)  # the whole site is measured with the computer to itself
        whole_site.measure(Results.at(folder, whole_site.FILE), ENOUGH_RUNS, log)
    write_report(folder)


@app.command("measure")
def measure_cells(
    full: Annotated[bool, typer.Option("--full", help="The whole matrix; it takes hours.")] = False,
    cells: Annotated[
        str, typer.Option(help="Only these: SCENARIO/HOSTS/NETWORK,..., e.g. nothing/8/20ms")
    ] = "",
    minutes: Annotated[
        int, typer.Option(help="Begin no cell later than this; 0: all are measured.")
    ] = 25,
    runs: Annotated[int, typer.Option(min=1, help="Of each side in each cell.")] = ENOUGH_RUNS,
    sides: Annotated[
        str, typer.Option(help="Only these sides; equality is checked among them.")
    ] = ",".join(SIDES),
    folder: _Folder = _RESULTS,
    keep_machines: Annotated[
        bool, typer.Option("--keep", help="Leave the machines up at the end.")
    ] = False,
) -> None:
    """Measure, and print a table; what is measured already is not measured again.

    --cells has a file of its own, cells.jsonl. docs/performance.md is written by `report` alone,
    and at the end of `all`.
    """
    if unknown := [name for name in sides.split(",") if name not in SIDES]:
        raise ValueError(f"no side is called {', '.join(unknown)}; there are: {', '.join(SIDES)}")
    selected_cells = parse(cells) if cells else every_cell() if full else DEFAULT
    log, results = progress(), Results.at(folder, _CELLS_FILE if cells else SAMPLES_FILE)
    with _interruptible(log):
        lab = machines.ensure(log)
        results.begin()
        runner = Runner(lab, {name: SIDES[name] for name in sides.split(",")}, results, runs, log)
        budget_s = None if full or cells or not minutes else minutes * 60
        remaining_cells = runner.measure(selected_cells, budget_s)
    if remaining_cells:
        names = ", ".join(map(str, remaining_cells))
        log(f"not measured for lack of time: {names}; the same command goes on with them")
        log("the machines stay up for it; to remove them: scripts/bench machines down")
    elif not keep_machines:
        machines.down(lab, log)
    print(tables.seconds(Data(results.records()), selected_cells, str, "cell"))
    print(f"raw data: {results.path}")


@app.command("growth")
def measure_growth(
    sizes: Annotated[str, typer.Option(help="Numbers of hosts.")] = ",".join(
        map(str, growth.SIZES)
    ),
    minutes: Annotated[
        int, typer.Option(help="After every size was run once: repeat what ends before.")
    ] = _GROWTH_MINUTES,
    folder: _Folder = _RESULTS,
) -> None:
    """Measure how a run with nothing to do grows up to 1,000 simulated hosts."""
    log, results = progress(), Results.at(folder, growth_page.FILE)
    lab = machines.ensure(log)
    growth.measure(lab, results, [int(size) for size in sizes.split(",")], minutes * 60, log)
    print(f"raw data: {results.path}; scripts/bench report puts them into {report.PAGE.name}")


@app.command("site")
def measure_site(
    runs: Annotated[int, typer.Option(min=1, help="Of each kind but the first.")] = ENOUGH_RUNS,
    folder: _Folder = _RESULTS,
) -> None:
    """Measure the whole site on a lab of its own: converged, then with nothing to do."""
    log, results = progress(), Results.at(folder, whole_site.FILE)
    whole_site.measure(results, runs, log)
    print(f"raw data: {results.path}; scripts/bench report puts them into {report.PAGE.name}")


@app.command("report")
def write_report(folder: _Folder = _RESULTS) -> None:
    """Write tables and plots of docs/performance.md again, from raw data."""
    report.write(folder)
    if (folder / growth_page.FILE).exists():
        growth_page.write(folder)
    if (folder / whole_site.FILE).exists():
        whole_site.write(folder)
    print(report.PAGE)


@app.command("run")
def run_once(side: str, count: int, condition: str = "0.2ms") -> None:
    """Run one side once on the first COUNT machines as they are, and tell what it cost."""
    log = progress()
    lab = machines.ensure(log)
    machines.boot(lab, count, machines.DELIVERED, log)
    with network.controller(lab, network.CONDITIONS[condition]) as controller:
        measured = measure.run(lab, controller, SIDES[side], machines.site(lab, count))
    for field in fields(measured):
        print(f"{field.name:10} {getattr(measured, field.name)}")


def main(arguments: list[str]) -> int:
    """Run the command; what goes wrong is one message on stderr, exit code 1."""
    if not arguments:
        arguments = ["all"]
    elif arguments[0].startswith("-") and arguments[0] != "--help":
        arguments = ["measure", *arguments]
    command: Any = typer.main.get_command(app)
    bench_lock = state.lock(f"bench-{machines.NAME}", wait=False)
    try:
        with contextlib.nullcontext() if "--help" in arguments else bench_lock:
            command(arguments, prog_name="scripts/bench")
    except (LabError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0
