"""Earlier runs, by the run.json in their reports, and how long phases took in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gpuboot.config.exit_codes import ENDED
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
    found: dict[str, Duration] = {}
    for _, run in islice(past_runs(reports, cluster), _NEWEST):
        if run["exit"] not in ENDED:
            continue
        changed = changed_operations(run)
        for phase in run["phases"]:
            name, wanted = phase["name"], planned.get(phase["name"])
            exact = name in found and not found[name].more
            if not wanted or exact or not wanted <= changed.get(name, set()):
                continue
            more = changed[name] != wanted
            if name not in found or not more:
                found[name] = Duration(seconds=phase["seconds"], started=run["started"], more=more)
    return found


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
    """Its time, and which it is of those that began in the same second."""
    moment, _, rest = folder.name.partition("-")
    number = rest.rpartition("-")[2]
    return moment, int(number) if number.isdigit() else 1, rest


def changed_operations(run: Mapping[str, Any]) -> dict[str, set[str]]:
    """Phase -> operations that changed something on any host, without versions in their names."""
    found: dict[str, set[str]] = {}
    for host in run["hosts"].values():
        for name in host["changed"]:
            phase, _, rest = name.partition(" | ")
            found.setdefault(phase, set()).add(_kind(rest or name))
            found.setdefault(WAIT, set()).add(f"{phase} | {_kind(rest or name)}")
    return found
