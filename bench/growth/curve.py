"""The curve as tables and plots, measured and calculated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.growth.measure import KIND, SIZES
from bench.report import Plot
from bench.statistics import Summary, summarize
from bench.tables import NOT_RUN, number, spread, table

# A line through these; further out it is a forecast that the measured ones can be held against.
FITTED = 48
COLUMNS = {
    "seconds": "seconds",
    "cpu_s": "CPU of the controller, s",
    "peak_mib": "peak memory, MiB",
    "connections_at_once": "connections at once",
    "commands": "commands a host",
    "servers_cpu_s": "CPU of what answers, s",
}


@dataclass(frozen=True)
class Line:
    """start + slope × hosts"""

    start: float
    slope: float

    def at(self, hosts: int) -> float:
        return self.start + self.slope * hosts


@dataclass(frozen=True)
class Curve:
    """The runs of one state of the code, by number of hosts."""

    runs: Mapping[int, Sequence[Mapping[str, Any]]]

    def summary(self, hosts: int, quantity: str) -> Summary | None:
        records = self.runs.get(hosts, ())
        scale = hosts if quantity == "commands" else 1
        return summarize(float(record[quantity]) / scale for record in records)

    def line(self, quantity: str) -> Line:
        """The line through the medians up to `FITTED` hosts."""
        points = []
        for hosts in sorted(self.runs):
            summary = self.summary(hosts, quantity)
            if summary is not None and hosts <= FITTED:
                points.append((float(hosts), summary.median))
        return fit(points)


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the least sum of squared distances. Raises `ValueError` for fewer than two."""
    if len(points) < 2:
        raise ValueError("a line takes two numbers of hosts")
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = above / sum((x - mean_x) ** 2 for x, _ in points)
    return Line(mean_y - slope * mean_x, slope)


def newest(records: Sequence[Mapping[str, Any]]) -> Curve:
    """The runs of the code that was measured last."""
    growth_records = [record for record in records if record["kind"] == KIND]
    runs: dict[int, list[Mapping[str, Any]]] = {}
    for record in growth_records:
        if record["code"] == growth_records[-1]["code"]:
            runs.setdefault(record["hosts"], []).append(record)
    return Curve(runs)


def measured(curve: Curve) -> str:
    """A table with a row for each number of hosts."""
    rows = [
        [f"{hosts:,}", *(spread(curve.summary(hosts, name)) for name in COLUMNS)] for hosts in SIZES
    ]
    return table(["hosts", *COLUMNS.values()], rows)


def calculated(curve: Curve) -> str:
    """A table of the larger sites: by the line through the smaller ones, and as measured."""
    names = ("seconds", "cpu_s", "peak_mib")
    lines = {name: curve.line(name) for name in names}
    rows = [
        [
            f"{COLUMNS[name]}: {number(line.start)} + {line.slope:.3f} × hosts",
            *(
                _with_measured(line.at(hosts), curve.summary(hosts, name))
                for hosts in _sizes_not_fitted()
            ),
        ]
        for name, line in lines.items()
    ]
    return table(
        ["calculated (measured)", *(f"{hosts:,} hosts" for hosts in _sizes_not_fitted())], rows
    )


def _sizes_not_fitted() -> list[int]:
    return [hosts for hosts in SIZES if hosts > FITTED]


def _with_measured(value: float, summary: Summary | None) -> str:
    return f"{number(value)} ({number(summary.median) if summary else NOT_RUN})"


def plots(curve: Curve) -> list[Plot]:
    """The plots of time and of memory."""

    def values(name: str) -> list[list[float] | None]:
        summaries = (curve.summary(hosts, name) for hosts in SIZES)
        return [
            [summary.median, summary.least, summary.most] if summary else None
            for summary in summaries
        ]

    line = curve.line("cpu_s")
    reckoned = [[line.at(hosts)] * 3 for hosts in SIZES]
    time = [
        {"name": "seconds", "values": values("seconds")},
        {"name": "CPU of the controller", "values": values("cpu_s")},
        {"name": f"calculated from up to {FITTED} hosts", "values": reckoned},
    ]
    memory = [{"name": "peak memory", "values": values("peak_mib")}]
    shared = {"kind": "lines", "x": list(SIZES), "xlabel": "hosts"}
    return [
        {**shared, "name": "growth", "title": "Nothing to do: how does a run grow?",
         "ylabel": "seconds (logarithmic)", "series": time},
        {**shared, "name": "growth-memory", "title": "Nothing to do: how does memory grow?",
         "ylabel": "MiB (logarithmic)", "series": memory},
    ]  # fmt: skip
