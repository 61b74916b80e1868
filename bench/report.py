"""Writes what was measured into docs/performance.md: tables between markers, plots beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import environment, results, tables
from bench.data import SIDES, Data, newest
from bench.matrix import HOSTS, SCENARIOS, Cell
from bench.network import CONDITIONS
from bench.results import ROOT
from lab.state import LabError

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- scripts/bench: begin -->", "<!-- scripts/bench: end -->"
_PLOTTER = Path(__file__).with_name("plots.py")

Plot = dict[str, Any]


def write(folder: Path, page: Path = PAGE) -> None:
    """Make the page's tables and plots from the raw data in a folder.

    Raises `LabError` when there is no data, or when the page lacks the markers.
    """
    data = newest(results.read(folder / results.SAMPLES_FILE))
    if not data.cells():
        raise LabError(f"{folder} holds no measurement: scripts/bench makes some")
    pictures = page.with_suffix("")
    pictures.mkdir(exist_ok=True)
    shutil.copyfile(folder / results.SAMPLES_FILE, pictures / results.SAMPLES_FILE)
    draw(plots(data), pictures)
    page.write_text(insert(page.read_text(), section(data, pictures.name)))


def insert(text: str, section: str, first: str = BEGIN, last: str = END) -> str:
    """A page with the section between its markers. Raises `LabError` without them."""
    before, begin, remainder = text.partition(first)
    _, end, after = remainder.partition(last)
    if not begin or not end:
        raise LabError(f"the page has no lines {first} and {last}")
    return f"{before}{first}\n\n{section.strip()}\n\n{last}{after}"


def draw(specifications: Sequence[Plot], folder: Path) -> None:
    """Draw plots into a folder, by the program in the benchmark's own environment."""
    command = [str(environment.program("python")), str(_PLOTTER), str(folder)]
    result = subprocess.run(
        command, input=json.dumps(specifications), text=True, capture_output=True
    )
    if result.returncode != 0:
        raise LabError(f"{_PLOTTER.name}: {result.stderr.strip()}")


def plots(data: Data) -> list[Plot]:
    """What each plot shows, as bench/plots.py takes it: one plot for each question."""
    networks = [condition.title for condition in CONDITIONS.values()]
    scenarios = list(SCENARIOS.values())

    def plot(
        name: str, title: str, ylabel: str, cells: Sequence[Cell], x: Sequence[Any], xlabel: str,
        quantity: str, scale: Callable[[Cell], float] = lambda cell: 1.0,
    ) -> Plot:  # fmt: skip
        kind = "lines" if x is HOSTS else "bars"
        series = [
            {"name": title, "values": [_value(data, cell, side, quantity, scale) for cell in cells]}
            for side, title in SIDES.items()
        ]
        return {"name": name, "kind": kind, "title": title, "x": list(x), "xlabel": xlabel,
                "ylabel": ylabel, "series": series}  # fmt: skip

    hosts, one_host = "hosts", "1 host"
    by_hosts, by_network, by_scenario = tables.BY_HOSTS, tables.BY_NETWORK, tables.BY_SCENARIO
    return [
        plot("hosts", "Nothing to do: how long does a run take?", "seconds (logarithmic)",
             by_hosts, HOSTS, hosts, "seconds"),
        plot("network", "Nothing to do, 1 host: what does distance cost?", "seconds",
             by_network, networks, "round-trip time", "seconds"),
        plot("scenarios", "1 host: how long does a run take?", "seconds",
             by_scenario, scenarios, one_host, "seconds"),
        plot("cpu", "Nothing to do: how busy is the controller?", "CPU seconds (logarithmic)",
             by_hosts, HOSTS, hosts, "cpu_s"),
        plot("hosts-cpu", "Nothing to do: how busy is a host?", "CPU seconds (logarithmic)",
             by_hosts, HOSTS, hosts, "hosts_cpu_s", lambda cell: cell.hosts),
        plot("memory", "Nothing to do: how much memory does the controller need?",
             "MiB (logarithmic)", by_hosts, HOSTS, hosts, "peak_mib"),
        plot("commands", "Nothing to do: how many commands reach a host?",
             "commands per host (logarithmic)", by_hosts, HOSTS, hosts, "commands",
             lambda cell: cell.hosts),
        plot("bytes", "Nothing to do: how much goes over the wire?",
             "KiB per host (logarithmic)", by_hosts, HOSTS, hosts, "bytes",
             lambda cell: 1024.0 * cell.hosts),
    ]  # fmt: skip


def _value(
    data: Data, cell: Cell, side: str, quantity: str, scale: Callable[[Cell], float]
) -> list[float] | None:
    """Median, least and most; None where nothing was measured."""
    summary = data.summary(cell, side, quantity)
    if summary is None:
        return None
    return [value / scale(cell) for value in (summary.median, summary.least, summary.most)]


def section(data: Data, pictures: str) -> str:
    """The part of the page between the markers. + pictures: the folder of plots, as in a link"""
    parts = [
        ("", measured_on(data, "sample", f"{pictures}/samples.jsonl")),
        ("Targets", tables.targets(data)),
        ("By number of hosts", _with(pictures, "hosts", tables.by_hosts(data))),
        ("By distance", _with(pictures, "network", tables.by_network(data))),
        ("By what there is to do", _with(pictures, "scenarios", tables.by_scenario(data))),
        ("As many machines as a lab holds", tables.many(data)),
        ("CPU time of the controller", _with(pictures, "cpu",
            tables.quantity(data, "cpu_s", "s", 1, per_host=False))),
        ("CPU time of the hosts", _with(pictures, "hosts-cpu",
            tables.quantity(data, "hosts_cpu_s", "s a host", 1, per_host=True))),
        ("Memory of the controller", _with(pictures, "memory",
            tables.quantity(data, "peak_mib", "MiB", 1, per_host=False))),
        ("Commands", _with(pictures, "commands",
            tables.quantity(data, "commands", "a host", 1, per_host=True))),
        ("Bytes on the wire", _with(pictures, "bytes",
            tables.quantity(data, "bytes", "KiB a host", 1024, per_host=True))),
        ("What was measured", f"{tables.coverage(data)}\n{tables.links(data)}\n{_equality(data)}"),
    ]  # fmt: skip
    return "\n".join(f"### {title}\n\n{text}" if title else f"{text}\n" for title, text in parts)


def _with(pictures: str, name: str, text: str) -> str:
    return f"![The table below as a plot]({pictures}/{name}.svg)\n\n{text}"


def measured_on(data: Data, kind: str, raw: str) -> str:
    """When and on what the records of a kind were taken. + raw: a link to them"""
    host = data.last("host")
    if host is None:
        raise LabError("the raw data does not say on which computer it was measured")
    dates = sorted({record["at"][:10] for record in data.records if record["kind"] == kind})
    versions = ", ".join(f"{name} {version}" for name, version in host["versions"].items())
    return (
        f"Measured on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, on one computer: "
        f"{host['cores']} cores ({host['cpu']}), {host['memory_gib']:g} GiB, Linux "
        f"{host['kernel']}, Python {host['python']}; revision {host['revision']}; {versions}. "
        "Figures are medians, with the least and the most of all runs in brackets "
        f"([raw data]({raw}))."
    )


def _equality(data: Data) -> str:
    """How often the sides found each other's work to be right, and that they always did."""
    checks = [record for record in data.records if record["kind"] == "equality"]
    pairs = {(record["after"], record["by"]) for record in checks}
    directions = ", ".join(
        f"{SIDES[by]} after {SIDES[after]}" for after, by in sorted(pairs) if after != by
    )
    changes = [record for record in checks if record["changed"]]
    if changes:
        return f"**The sides differ**: {changes[-1]['by']} changed {changes[-1]['changed']}.\n"
    return (
        f"Checks that a side finds nothing to change: {len(checks)}, none failed ({directions}).\n"
    )
