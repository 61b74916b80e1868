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
    growth_curve = curve.newest(records)
    if not growth_curve.runs:
        raise LabError(f"{folder} holds no curve: scripts/bench growth measures one")
    pictures = page.with_suffix("")
    pictures.mkdir(exist_ok=True)
    (pictures / FILE).write_text((folder / FILE).read_text())
    report.draw(curve.plots(growth_curve), pictures)
    code = next(record["code"] for record in reversed(records) if record["kind"] == "growth")
    data = Data([record for record in records if record["code"] == code])
    page.write_text(
        report.insert(page.read_text(), section(data, growth_curve, pictures.name), BEGIN, END)
    )


def section(data: Data, growth_curve: curve.Curve, pictures: str) -> str:
    """The part of the page between the markers. + pictures: the folder of plots, as in a link"""
    return "\n".join((
        report.measured_on(data, "growth", f"{pictures}/{FILE}"),
        "",
        f"![The table below as a plot]({pictures}/growth.svg)",
        "",
        curve.measured(growth_curve),
        f"![Memory of the controller as a plot]({pictures}/growth-memory.svg)",
        "",
        f"Calculated by a straight line through the medians of up to {curve.FITTED} hosts:",
        "",
        curve.calculated(growth_curve),
    ))  # fmt: skip
