"""Writes the curve into docs/performance.md, between markers of its own."""

from __future__ import annotations

from pathlib import Path

from bench import report, results
from bench.data import Data
from bench.growth import curve
from lab.state import LabError

BEGIN, END = "<!-- scripts/bench growth: begin -->", "<!-- scripts/bench growth: end -->"
FILE = "growth.jsonl"


def write(folder: Path, page: Path = report.PAGE) -> None:
    """Make the page's tables and plots of growth from the raw data in a folder."""
    records = results.read(folder / FILE)
    found = curve.newest(records)
    if not found.runs:
        raise LabError(f"{folder} holds no curve: scripts/bench growth measures one")
    pictures = page.with_suffix("")
    pictures.mkdir(exist_ok=True)
    (pictures / FILE).write_text((folder / FILE).read_text())
    report.draw(curve.plots(found), pictures)
    code = next(one["code"] for one in reversed(records) if one["kind"] == "growth")
    data = Data([one for one in records if one["code"] == code])
    page.write_text(
        report.insert(page.read_text(), section(data, found, pictures.name), BEGIN, END)
    )


def section(data: Data, found: curve.Curve, pictures: str) -> str:
    """The part of the page between the markers. + pictures: the folder of plots, as in a link"""
    return "\n".join((
        report.measured_on(data, "growth", f"{pictures}/{FILE}"),
        "",
        f"![The table below as a plot]({pictures}/growth.svg)",
        "",
        curve.measured(found),
        f"![Memory of the controller as a plot]({pictures}/growth-memory.svg)",
        "",
        f"Calculated by a straight line through the medians of up to {curve.FITTED} hosts:",
        "",
        curve.calculated(found),
    ))  # fmt: skip
