"""The `scripts/bench` command."""

from __future__ import annotations

import sys
from typing import Any

import typer
import typer.main

from bench import machines
from lab import state
from lab.cli_up import progress
from lab.state import LabError

app = typer.Typer(add_completion=False, help="gpuboot beside Ansible, measured on light machines.")
light = typer.Typer(add_completion=False, help="The light machines by themselves.")
app.add_typer(light, name="machines")


@light.command()
def up(count: int) -> None:
    """Boot the first COUNT machines."""
    say = progress()
    lab = machines.ensure(say)
    machines.boot(lab, count, machines.FRESH, say)
    for machine in lab.machines[:count]:
        print(f"{machine.name} {machine.address}")
    total = machines.memory_mib(lab, count)
    say(f"memory: {sum(total.values()):.0f} MiB in all, {max(total.values()):.0f} at most")


@light.command()
def fresh(count: int) -> None:
    """Put the first COUNT machines back to how they are delivered."""
    say = progress()
    lab = machines.ensure(say)
    machines.reset(lab, lab.machines[:count], machines.FRESH, say)


@light.command()
def down() -> None:
    """Remove the machines, their mirror and network."""
    if machines.NAME in {lab.name for lab in state.labs()}:
        machines.down(state.load(machines.NAME), progress())


def main(arguments: list[str]) -> int:
    """Run the command; what goes wrong is one message on stderr, exit code 1."""
    command: Any = typer.main.get_command(app)
    try:
        command(arguments, prog_name="scripts/bench")
    except LabError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0
