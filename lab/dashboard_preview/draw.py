"""Asks a Prometheus for all that the dashboards show, and writes the pages and pictures."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from gpuboot.config.settings import Settings
from gpuboot.monitoring.dashboards import dashboards
from lab.dashboard_preview.page import UNIT, WIDTH, page
from lab.dashboard_preview.panels import Query, TimeRange, defaults, panels, query_panel

Object = dict[str, Any]
POINTS = 240
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def prometheus_query(url: str, times: TimeRange) -> Query:
    """Asks a Prometheus as Grafana would. Raises RuntimeError with its answer to a bad query.

    + url: its address
    """
    session = requests.Session()

    def query_range(
        expr: str, instant: bool
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        query: dict[str, str | float] = {"query": expr, "time": times.end}
        if not instant:
            query = {"query": expr, "start": times.start, "end": times.end, "step": times.step}
        path = "query" if instant else "query_range"
        answer = session.post(f"{url}/api/v1/{path}", data=query, timeout=60).json()
        if answer["status"] != "success":
            raise RuntimeError(f"{expr}: {answer['error']}")
        return [
            (
                {name: text for name, text in item["metric"].items() if name != "__name__"},
                [
                    (float(at), float(value))
                    for at, value in (item["values"] if "values" in item else [item["value"]])
                ],
            )
            for item in answer["data"]["result"]
        ]

    return query_range


def draw(
    settings: Settings,
    url: str,
    out: Path,
    hours: float,
    end: float | None = None,
    source: str = "",
    width: int = WIDTH,
) -> Iterator[Path]:
    """Write a page for each dashboard, and a picture where a browser is here; yields the files.

    + url: Prometheus' address
    + hours: how far the dashboards look back from `end` (unix seconds; default: now)
    + source: what the page says of where its data come from; default: the address
    + width: of pages and pictures, in pixels
    """
    until = end or time.time()
    start = until - hours * 3600
    times = TimeRange(start, until, max(round((until - start) / POINTS), 5))
    out.mkdir(parents=True, exist_ok=True)
    query_range = prometheus_query(url, times)
    for uid, board in dashboards(settings).items():
        values = {**defaults(board), **times.variables(scrape_s=15)}
        series = {panel["id"]: query_panel(panel, values, query_range) for panel in panels(board)}
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(until))
        note = (
            f"{hours:g} h until {when}. Data: {source or url}. Drawn by gpuboot's lab, not by "
            "Grafana: queries are the dashboard's own, the looks are not."
        )
        page_path = out / f"{uid}.html"
        page_path.write_text(page(board, series, times, note, width))
        yield page_path
        picture = _photograph(page_path, board, width)
        if picture:
            yield picture


def _photograph(page_path: Path, board: Object, width: int) -> Path | None:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        return None
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    picture = page_path.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",  # root has none
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={width},{rows * UNIT + 80}",
                f"--screenshot={picture}",
                page_path.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    return picture
