"""`scripts/lab dashboards`, or `python -m lab.dashboard_preview --url URL` with any Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuboot.config.settings import parse_settings
from lab.dashboard_preview.draw import draw
from lab.dashboard_preview.page import WIDTH

HOURS = 1.0


def main(
    url: Annotated[str, typer.Option(help="Prometheus' address.")] = "http://127.0.0.1:9090",
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("dashboards"),
    hours: Annotated[float, typer.Option(help="Hours that the dashboards look back.")] = HOURS,
    end: Annotated[float | None, typer.Option(help="Unix seconds; default: now.")] = None,
    source: Annotated[
        str, typer.Option(help="Where the data come from, as the pages say it.")
    ] = "",
    width: Annotated[int, typer.Option(help="Width of the pages, in pixels.")] = WIDTH,
    price: Annotated[float | None, typer.Option(help="Price of a GPU hour, for costs.")] = None,
) -> None:
    """Draw the dashboards with the data of a Prometheus, as HTML and, with chromium, as PNG."""
    settings = parse_settings({"cost": {"gpu_hour": {"*": price}}} if price else {})
    for path in draw(settings, url, out, hours, end, source, width):
        print(path)


if __name__ == "__main__":
    typer.run(main)
