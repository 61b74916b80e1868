"""The files of the history: `GPU-….jsonl` for each GPU, and `CLUSTER.json` for each cluster.

A line is only ever appended, and the files are plain text in one folder, so that a team can keep
them in git: two branches that verified different clusters merge without a conflict.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from gpuboot.config.settings import Verify
from gpuboot.verify.history.events import (
    Event,
    History,
    LastVerification,
    changes,
    from_json,
    last_verification,
    to_json,
)
from gpuboot.verify.report.report_model import Report
from gpuboot.verify.report.writer import write_json


class HistoryError(ValueError):
    """A file of the history that cannot be read; the text says which, and why."""


def folder(verify: Verify) -> Path:
    """Where the settings want the history to be."""
    return Path(verify.reports) / "history"


def note(report: Report, folder: Path) -> dict[str, list[Event]]:
    """Add a verification to the history; what that added, by GPU UUID.

    + folder: made when it is not there

    Raises `HistoryError`, and OSError.
    """
    new_events = changes(report, read(folder))
    folder.mkdir(parents=True, exist_ok=True)
    for uuid, events in new_events.items():
        with (folder / f"{uuid}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(to_json(event))}\n" for event in events)
    if not report.nodes:  # else it is the newest of some nodes, and not of the cluster
        last = asdict(last_verification(report))
        write_json(folder / f"{report.cluster}.json", last)
    return new_events


def read(folder: Path) -> dict[str, History]:
    """Every GPU's history, by UUID; none where there is no such folder. Raises `HistoryError`."""
    return {path.stem: History(path.stem, _events(path)) for path in _paths(folder, "GPU-*.jsonl")}


def read_last(folder: Path) -> dict[str, LastVerification]:
    """The newest verification of each cluster, by its name. Raises `HistoryError`."""
    verifications = {}
    for path in _paths(folder, "*.json"):
        try:
            verifications[path.stem] = LastVerification(
                **json.loads(path.read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, TypeError) as error:
            raise HistoryError(f"{path}: not a verification's record: {error}") from None
    return verifications


def _paths(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file() and path.stat().st_size)


def _events(path: Path) -> tuple[Event, ...]:
    """A merge in git may have left the lines in another order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            raise HistoryError(f"{path}, line {number}: not an event: {line[:80]}") from None
    return tuple(sorted(events, key=lambda event: event.at))
