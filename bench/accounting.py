"""A cgroup for one command and all it starts: CPU time and peak memory, and nothing that stays."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Usage:
    """What the processes of a cgroup used. Memory includes files that they were first to read."""

    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Group:
    """A cgroup: one folder where the hierarchy is unified (v2), one for each controller else."""

    cpu: Path
    memory: Path

    def enter(self) -> list[str]:
        """What to put before a command that is to run in the group."""
        files = " ".join(f"{folder}/cgroup.procs" for folder in self._folders())
        script = f'for file in {files}; do echo $$ > $file; done; exec "$@"'
        return ["sh", "-ec", script, "enter"]

    def usage(self) -> Usage:
        """What has been used so far."""
        peak = "memory.peak" if self.cpu == self.memory else "memory.max_usage_in_bytes"
        return Usage(cpu_s([self.cpu]), int((self.memory / peak).read_text()) / 2**20)

    def clear(self) -> int:
        """End every process in the group; returns how many there were."""
        killed: set[int] = set()
        deadline = time.monotonic() + 10
        while pids := _members(self.cpu):
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes {sorted(pids)} do not end")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= pids
            time.sleep(0.02)
        return len(killed)

    def _folders(self) -> list[Path]:
        return list(dict.fromkeys((self.cpu, self.memory)))


@contextlib.contextmanager
def group(name: str, root: Path = _ROOT) -> Iterator[Group]:
    """A fresh cgroup, for as long as the `with` lasts; what runs in it at the end is ended.

    + name: its folder's; one of that name that was left behind is cleared first
    + root: where cgroups are mounted
    """
    if (root / "cgroup.controllers").exists():
        created_group = Group(root / name, root / name)
        for controller in ("cpu", "memory"):
            (root / "cgroup.subtree_control").write_text(f"+{controller}")
    else:
        created_group = Group(root / "cpuacct" / name, root / "memory" / name)
    for folder in created_group._folders():
        if folder.exists():  # of a benchmark that was killed: its counts are not ours
            created_group.clear()
            folder.rmdir()
        folder.mkdir()
    try:
        yield created_group
    finally:
        created_group.clear()
        for folder in created_group._folders():
            _remove(folder)


def _remove(folder: Path) -> None:
    """The kernel needs a moment after the last process."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            return folder.rmdir()
        time.sleep(0.02)
    folder.rmdir()
    return None


def _members(folder: Path) -> set[int]:
    return {int(pid) for pid in (folder / "cgroup.procs").read_text().split()} - {os.getpid()}


def cpu_s(folders: Iterable[Path]) -> float:
    """CPU time of a cgroup. + folders: all it has; those of other controllers do not matter"""
    for folder in folders:
        if (folder / "cpuacct.usage").exists():
            return int((folder / "cpuacct.usage").read_text()) / 1e9
        if (folder / "cpu.stat").exists():
            values = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
            if "usage_usec" in values:  # v1 has a cpu.stat without it
                return int(values["usage_usec"]) / 1e6
    raise FileNotFoundError("no cgroup that counts CPU time")
