"""Where a run can be killed, found in the record of a run that was not; and killing it there."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lab import machines, state
from lab.build.progress import Progress
from lab.state import Machine
from tests.e2e.conftest import ROOT, Lab

LONG_S = 3.0  # a step that takes so long is killed in its midst too
_BACK_S = 5.0  # how long a machine is without power
_STARTS = re.compile(r"--> Starting operation: (.+?)\s*$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

KillMethod = Literal["SIGKILL", "power cut"]


@dataclass(frozen=True)
class KillPoint:
    """A moment of a run.

    + operation: name with its phase, as pyinfra prints it when it starts
    + after_s: so long after its start; 0 at a phase's boundary
    + hosts: inventory names of those it works on
    """

    operation: str
    after_s: float
    hosts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.operation}, " + (
            f"after {self.after_s:.1f} s" if self.after_s else "as its phase begins"
        )


def found_in(run: Mapping[str, Any], long_s: float = LONG_S) -> list[KillPoint]:
    """The boundaries between phases, and the middle of every long step.

    + run: run.json of a run that was not killed
    + long_s: what counts as a long step
    """
    points, phase = [], ""
    for item in run["operations"]:
        name = f"{item['phase']} | {item['name']}"
        if item["phase"] != phase:
            phase = item["phase"]
            points.append(KillPoint(name, 0, tuple(item["hosts"])))
        if item["seconds"] >= long_s:
            points.append(KillPoint(name, item["seconds"] / 2, tuple(item["hosts"])))
    return points


@dataclass(frozen=True)
class Killed:
    """A run that was killed.

    + at: the operation that ran then, "" where the run ended before
    + machine: whose power was cut; "" for none
    """

    at: str
    machine: str = ""


def kill_at(
    lab: Lab, point: KillPoint, method: KillMethod, settings: Mapping[str, Any] | None = None
) -> Killed:
    """Start a run and kill it at this point, or cut the power of a machine that is at work then.

    After a power cut the run goes on without that machine until it ends by itself.
    """
    machine = point.hosts[-1] if method == "power cut" else ""
    with subprocess.Popen(
        ["pyinfra", "inventories/lab.py", "deploys/site.py", "-y", "-v"],
        cwd=ROOT,
        env=lab.environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        at = _until_started(run, point)
        drained = threading.Thread(target=lambda: list(_lines(run)), daemon=True)
        drained.start()
        with suppress(subprocess.TimeoutExpired):
            run.wait(point.after_s)
            at = ""
        if machine:
            power_cut(lab, machine)
            run.wait(1500)
        run.kill()
    return Killed(at, machine)


def _until_started(run: subprocess.Popen[str], point: KillPoint) -> str:
    """The point's operation when it has started; "" when the run ends without it."""
    started = (match[1] for line in _lines(run) if (match := _STARTS.search(line)))
    return point.operation if point.operation in started else ""


def _lines(run: subprocess.Popen[str]) -> Iterator[str]:
    assert run.stdout is not None
    for line in run.stdout:
        yield _COLOURS.sub("", line)


def power_cut(lab: Lab, machine: str) -> None:
    """Take a machine's power for some seconds."""
    assert lab.lab("power", "--name", lab.name, machine, "off").code == 0
    time.sleep(_BACK_S)
    assert lab.lab("power", "--name", lab.name, machine, "on").code == 0


class Copies:
    """The disks of a lab's machines as they once were, to begin again from there."""

    def __init__(self, name: str) -> None:
        """Copy them: the machines are without power for that time.

        + name: of the lab
        """
        self.lab = state.load(name)
        for machine in self.lab.machines:
            subprocess.run([*machines.ssh_command(self.lab, machine), "sync"], check=True)
        self._off()
        for machine in self.lab.machines:
            _copy(self.lab.root(machine), self._backup_path(machine))
        self._on()

    def put_back(self) -> None:
        """Boot the machines with their disks as they were."""
        self._off()
        for machine in self.lab.machines:
            shutil.rmtree(self.lab.root(machine))
            _copy(self._backup_path(machine), self.lab.root(machine))
        self._on()

    def _backup_path(self, machine: Machine) -> Path:
        return self.lab.root(machine).with_name("kept")

    def _off(self) -> None:
        for machine in self.lab.machines:
            machines.power_off(self.lab, machine)

    def _on(self) -> None:
        progress: Progress = lambda line: None  # noqa: E731
        for machine in self.lab.machines:
            machines.power_on(self.lab, machine)
        for machine in self.lab.machines:
            machines.wait_for_ssh(self.lab, machine, progress)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)
