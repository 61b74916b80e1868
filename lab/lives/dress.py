"""Puts lives on a lab's machines, asks whether what they brought still works, takes them off."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import machines
from lab.build.progress import Progress
from lab.lives import FOLDER, Life
from lab.state import MIRROR_URL, Lab, LabError, Machine


def wearers(lab: Lab, life: Life) -> list[Machine]:
    """The machines of the lab that wear a life."""
    return [machine for machine in lab.machines if life.machines == "every" or machine.gpus]


def dress(lab: Lab, lives: Sequence[Life], progress: Progress) -> None:
    """Put lives on the machines that do not wear them yet. Raises `LabError` when one fails."""

    def wear(machine: Machine) -> None:
        for life in lives:
            if machine in wearers(lab, life) and not (worn := _worn(lab, machine, life)).exists():
                progress(f"{machine.name}: {life.description}")
                step(lab, machine, life, "wear")
                worn.parent.mkdir(exist_ok=True)
                worn.touch()

    machines.for_each(lab, wear)


def undress(lab: Lab, life: Life) -> None:
    """Take a life off the machines that wear it."""
    for machine in wearers(lab, life):
        if (worn := _worn(lab, machine, life)).exists():
            step(lab, machine, life, "off")
            worn.unlink()


def works(lab: Lab, life: Life) -> None:
    """Raises `LabError` with what does not work any more of what a life has brought."""
    for machine in wearers(lab, life):
        step(lab, machine, life, "works")


def step(lab: Lab, machine: Machine, life: Life, function: str) -> str:
    """Run a function of the life's script on a machine; return what it prints."""
    script = (FOLDER / "functions.sh").read_text() + life.script.read_text()
    variables = f"mirror={MIRROR_URL} host={lab.host_address} subnet={lab.subnet}"
    variables += f" codename={lab.debian.codename} busybox={_busybox(lab)}"
    result = subprocess.run(
        [*machines.ssh_command(lab, machine), f'{variables} sh -c "$(cat)" </dev/null'],
        input=f"{script}\n{function}\n",
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        output = (result.stdout + result.stderr).strip()
        raise LabError(f"{machine.name}: {function} of the life {life.name} fails:\n{output}")
    return result.stdout


def _busybox(lab: Lab) -> str:
    """The tag of busybox that the mirror has."""
    tag: str = json.loads((lab.docroot / "lab.lock.json").read_text())["versions"]["images"][
        "busybox"
    ]
    return tag


def _worn(lab: Lab, machine: Machine, life: Life) -> Path:
    return lab.machine_dir(machine) / "lives" / life.name
