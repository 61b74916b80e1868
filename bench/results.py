"""What was measured, one JSON object a line, appended as soon as it is known.

kind "host": the computer and the versions, at each start; "ping": the link before a cell;
"equality": what one side changed after another; "sample": one timed run; "growth": one run on
simulated hosts.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import environment
from bench.matrix import Cell
from lab.build.store import digest
from lab.state import LabError

ROOT = Path(__file__).parents[1]
# what decides a figure; documents and plots do not
_MEASURED = (
    "gpuboot", "deploys", "templates", "config.py", "requirements.lock",
    "bench/ansible", "bench/plain", "bench/inventory.py", "bench/settings.py", "bench/sides.py",
    "bench/requirements.lock", "bench/relay.c", "bench/growth/forced.sh",
)  # fmt: skip

SAMPLES_FILE = "samples.jsonl"
Record = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The file of a benchmark, and the digest of the code that is measured now."""

    path: Path
    code: str

    @classmethod
    def at(cls, folder: Path, name: str = SAMPLES_FILE) -> Results:
        """The results in a folder, which is made if it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / name, digest(*(ROOT / name for name in _MEASURED)))

    def append(self, kind: str, **values: Any) -> None:
        """Add a record; a benchmark that is interrupted keeps it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"kind": kind, "at": now, "code": self.code, **values}
        with self.path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def begin(self) -> None:
        """Record the computer that measures now, and what it measures."""
        self.append("host", **_host())

    def records(self) -> list[Record]:
        """Every record of the code that is measured now."""
        return [record for record in read(self.path) if record["code"] == self.code]

    def rounds(self, cell: Cell, sides: Sequence[str]) -> int:
        """The number of rounds in which every side has been measured in a cell."""
        cell_samples = samples(self.records(), cell)
        return min(
            len([sample for sample in cell_samples if sample["side"] == side]) for side in sides
        )


def read(path: Path) -> list[Record]:
    """All records of a file. Raises `LabError` for one that is damaged."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except json.JSONDecodeError as error:
        raise LabError(f"{path} is damaged ({error}): remove it and measure again") from error


def samples(records: Sequence[Mapping[str, Any]], cell: Cell) -> list[Mapping[str, Any]]:
    """The timed runs of a cell, of all sides."""
    return [
        record for record in records if record["kind"] == "sample" and record["cell"] == str(cell)
    ]


def _host() -> Record:
    """The computer that measures, and what it measures."""
    return {
        "kernel": platform.release(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "revision": revision(),
        "versions": versions(),
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def revision() -> str:
    """The commit, with "+" when the checkout has changes beside it."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    state = [*git, "status", "--porcelain", "--", ".", ":!docs"]  # the benchmark writes there
    changes = subprocess.run(state, capture_output=True, text=True)
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


def versions() -> dict[str, str]:
    """The versions of the tools that are compared."""
    pinned = environment.versions()
    local_versions = {
        name: metadata.version(name) for name in ("gpuboot", "pyinfra", "paramiko", "gevent")
    }
    return local_versions | {name: pinned[name] for name in ("ansible-core", "mitogen")}
