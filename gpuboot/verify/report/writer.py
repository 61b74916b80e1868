"""The folder of a run, and the files in it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.report_model import Report

LATEST = "latest"


def new_folder(reports: Path, cluster: str, now: datetime | None = None) -> Path:
    """Make the folder of a run, and make `latest` lead to it. As `make_folder`. Raises OSError."""
    folder = make_folder(reports, cluster, now)
    point(folder)
    return folder


def make_folder(reports: Path, cluster: str, now: datetime | None = None) -> Path:
    """Make the folder of a run.

    + reports: `settings.verify.reports`
    + now: aware; default: now

    Two runs within one second get folders of their own. Raises OSError.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    base = f"{moment:%Y%m%dT%H%M%SZ}-{cluster}"
    reports.mkdir(parents=True, exist_ok=True)
    folder = reports / base
    number = 2
    while True:
        try:
            folder.mkdir()
            break
        except FileExistsError:
            folder, number = reports / f"{base}-{number}", number + 1
    return folder


def point(folder: Path) -> None:
    """Make `latest` lead to a run's folder, in one step. Raises OSError."""
    link = folder.with_name(LATEST)
    temporary = link.with_name(f".{link.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.name)
    try:
        temporary.replace(link)
    except OSError:
        temporary.unlink()
        raise


def write(report: Report, folder: Path) -> None:
    """Write verify.json, verify.xml and verify.html. Raises OSError."""
    write_json(folder / "verify.json", report.to_json())
    write_atomically(folder / "verify.xml", junit(report))
    write_atomically(folder / "verify.html", html(report))


def write_json(path: Path, data: Any) -> None:
    """Write data as readable JSON. Raises OSError."""
    write_atomically(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all: a reader never sees half of a report. Raises OSError."""
    if path.exists() and not path.is_file():  # a device or a pipe stays one
        path.write_text(text, encoding="utf-8")
        return
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
