"""Draws plots as SVG: `plots.py FOLDER < plots.json`, run where matplotlib is installed.

It knows nothing of what is measured: each plot of the JSON list says what it shows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

# colour and marker; the colours differ in lightness as well
STYLES = (("#0b4f8a", "o"), ("#e08a1e", "s"), ("#6f757d", "^"))


def short(value: float, _: object = None) -> str:
    """A figure as people say it: 0.8, 7.3, 81, 1,240."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def lines(axes: Any, plot: dict[str, Any]) -> None:
    """Medians over a number, each with its range."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for series, (colour, marker) in zip(plot["series"], STYLES, strict=False):
        points = [p for p in zip(plot["x"], series["values"], strict=True) if p[1]]
        if not points:
            continue
        xs, middle = [p[0] for p in points], [p[1][0] for p in points]
        errors = [[v[0] - v[1] for _, v in points], [v[2] - v[0] for _, v in points]]
        axes.errorbar(
            xs, middle, yerr=errors, color=colour, marker=marker, markersize=6, linewidth=2,
            capsize=4, label=series["name"],
        )  # fmt: skip
        for x, value in zip(xs, middle, strict=True):
            axes.annotate(
                short(value), (x, value), xytext=(0, 8), textcoords="offset points",
                ha="center", fontsize=9, color=colour,
            )  # fmt: skip
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.15, high * 1.5)
    for place, x in enumerate(plot["x"]):
        note_missing(axes, plot, place, x)
    axes.set_xticks(plot["x"], [str(x) for x in plot["x"]])
    axes.set_xlim(plot["x"][0] / 1.4, plot["x"][-1] * 1.4)
    axes.xaxis.set_minor_formatter(NullFormatter())


def bars(axes: Any, plot: dict[str, Any]) -> None:
    """Medians side by side, each with its range; what was not run is named."""
    width = 0.8 / len(plot["series"])
    for index, series in enumerate(plot["series"]):
        colour = STYLES[index][0]
        shift = (index - (len(plot["series"]) - 1) / 2) * width
        for place, value in enumerate(series["values"]):
            label = series["name"] if place == 0 else None
            if value is None:
                axes.bar(place + shift, 0, width, color=colour, label=label)
                continue
            errors = [[value[0] - value[1]], [value[2] - value[0]]]
            axes.bar(
                place + shift, value[0], width * 0.92, color=colour, label=label,
                edgecolor="white", yerr=errors, capsize=3, ecolor="#222222",
            )  # fmt: skip
            axes.annotate(
                short(value[0]), (place + shift, value[2]), xytext=(0, 3),
                textcoords="offset points", ha="center", fontsize=9, color=colour,
            )  # fmt: skip
    for place in range(len(plot["x"])):
        note_missing(axes, plot, place, place)
    axes.margins(y=0.1)
    axes.set_xticks(range(len(plot["x"])), plot["x"])
    axes.set_xlim(-0.6, len(plot["x"]) - 0.4)


def note_missing(axes: Any, plot: dict[str, Any], place: int, x: float) -> None:
    """Write "not run" where nothing was measured."""
    if all(series["values"][place] is None for series in plot["series"]):
        axes.text(x, 0.5, "not run", ha="center", transform=axes.get_xaxis_transform())


def draw(plot: dict[str, Any], folder: Path) -> None:
    """Draw a plot, as FOLDER/<its name>.svg."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    (lines if plot["kind"] == "lines" else bars)(axes, plot)
    axes.set_title(plot["title"], loc="left", fontsize=12, pad=26)
    axes.set_xlabel(plot["xlabel"])
    axes.set_ylabel(plot["ylabel"])
    axes.yaxis.set_major_formatter(FuncFormatter(short))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, fontsize=10)
    # without a date, and with names that are the same each time: a plot changes with its figures
    figure.savefig(folder / f"{plot['name']}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw the plots that stdin describes."""
    matplotlib.rcParams["svg.hashsalt"] = "gpuboot"
    matplotlib.rcParams["font.family"] = "DejaVu Sans"
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for plot in json.load(sys.stdin):
        draw(plot, folder)


if __name__ == "__main__":
    main()
