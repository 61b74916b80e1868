"""Earlier runs, by the run.json in their reports, and how long phases took in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gpuboot.config.exit_codes import COMPLETED_CODES
from gpuboot.plan.model import Duration, Step

WAIT = "Rollout"  # the phase that waits for what all phases have changed
_NEWEST = 50  # runs that are looked through
_VERSION = re.compile(r"v?\d+(\.\d+)+\S*|\b\d+\b")


def durations(reports: Path, cluster: str, steps: Iterable[Step]) -> dict[str, Duration]:
    """Phase -> how long it took when a run last changed the same in it; unknown ones are missing.

    + reports: folder of all reports; it need not exist
    + steps: what is about to change

    A run that changed more in a phase gives an upper bound, and is taken where none changed just
    the same. Versions in the operations' names make no difference. What `WAIT` took depends on all
    that changed, so it is known by runs that changed all of it.
    """
    planned: dict[str, set[str]] = {}
    for step in steps:
        planned.setdefault(step.phase, set()).add(_kind(step.name))
        planned.setdefault(WAIT, set()).add(f"{step.phase} | {_kind(step.name)}")
    known_durations: dict[str, Duration] = {}
    for _, run in islice(past_runs(reports, cluster), _NEWEST):
        if run["exit"] not in COMPLETED_CODES:
            continue
        changed = changed_operations(run)
        for phase in run["phases"]:
            name, planned_operations = phase["name"], planned.get(phase["name"])
            exact = name in known_durations and not known_durations[name].changed_more
            if (
                not planned_operations
                or exact
                or not planned_operations <= changed.get(name, set())
            ):
                continue
            has_more = changed[name] != planned_operations
            if name not in known_durations or not has_more:
                known_durations[name] = Duration(
                    seconds=phase["seconds"], started=run["started"], changed_more=has_more
                )
    return known_durations


def _kind(name: str) -> str:
    """An operation's name without the versions and numbers in it."""
    return _VERSION.sub("*", name)


def past_runs(reports: Path, cluster: str = "") -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Folder and run.json of each run, the newest first.

    + reports: folder of all reports; it need not exist
    + cluster: its name; "" for all
    """
    folders = (path for path in reports.glob(f"2*-{cluster}*") if path.is_dir())
    for folder in sorted(folders, key=_age, reverse=True):
        try:
            run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # of before run.json, or of a run that was killed at once
        if isinstance(run, dict) and "phases" in run and cluster in ("", run.get("cluster")):
            yield folder, run


def _age(folder: Path) -> tuple[str, int, str]:
    """The key to sort runs by: their time, and their number within the same second."""
    moment, _, suffix = folder.name.partition("-")
    number = suffix.rpartition("-")[2]
    return moment, int(number) if number.isdigit() else 1, suffix


def changed_operations(run: Mapping[str, Any]) -> dict[str, set[str]]:
    """Phase -> operations that changed something on any host, without versions in their names."""
    operations: dict[str, set[str]] = {}
    for host in run["hosts"].values():
        for name in host["changed"]:
            phase, _, operation = name.partition(" | ")
            operations.setdefault(phase, set()).add(_kind(operation or name))
            operations.setdefault(WAIT, set()).add(f"{phase} | {_kind(operation or name)}")
    return operations
