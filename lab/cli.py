"""The `scripts/lab` command."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from lab import failures, machines, preflight, state
from lab.cli_up import progress, up
from lab.mirror import cli as cli_mirror
from lab.mirror import service as mirror
from lab.mirror.cli import Name
from lab.state import LabError

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
_ADMIN = "/etc/kubernetes/admin.conf"

app = typer.Typer(
    add_completion=False,
    help="A small data centre on this host, for gpuboot. Without a command: up.",
)
app.command()(up)
app.add_typer(cli_mirror.app, name="mirror")


@app.command()
def check() -> None:
    """Say whether a lab can run on this host; change nothing."""
    preflight.require()
    print("a lab can run on this host")


@app.command("list")
def list_labs() -> None:
    """The labs on this host."""
    for lab in state.labs():
        names = ", ".join(f"{m.name} ({m.gpus} GPUs)" for m in lab.machines)
        print(f"{lab.name:12} {lab.subnet:16} {names}")


@app.command()
def status(name: Name = "lab") -> None:
    """Machines of the lab, and whether they answer; exit code 1 when one does not."""
    from lab.alert_receivers import endpoints, service
    from lab.up import machine_state

    lab = state.load(name)
    states = {machine: machine_state(lab, machine) for machine in lab.machines}
    for machine, current in states.items():
        description = f"{machine.role}, {machine.gpus} simulated GPUs"
        print(f"{machine.name:8} {machine.address:14} {current:8} {description}")
    receivers = f"https://{lab.host_address}:{endpoints.HTTPS_PORT}, SIMULATED"
    services = {
        "mirror": (mirror.is_running(lab), state.MIRROR_URL),
        "alerts": (service.is_running(lab), receivers),
    }
    for part, (runs, url) in services.items():
        print(f"{part:8} {lab.host_address:14} {'up' if runs else 'off':8} {url}")
    if "stale" in states.values():
        print(f"machines of a boot that is over: scripts/lab --name {lab.name} starts them again")
    running = all(runs for runs, _ in services.values())
    if not running or set(states.values()) != {"up"}:
        raise typer.Exit(1)


@app.command(context_settings=_PASS_ON)
def ssh(
    context: typer.Context,
    machine: str,
    name: Name = "lab",
    user: Annotated[str, typer.Option(help="Log in as root, admin or nosudo.")] = "root",
) -> None:
    """Log in to a machine, or run a command there."""
    _explain(context, machine)
    lab = state.load(name)
    command = machines.ssh_command(lab, lab.get(machine), user)
    _become([*command, *context.args])


@app.command(context_settings=_PASS_ON)
def kubectl(context: typer.Context, name: Name = "lab") -> None:
    """Run kubectl on the lab's first control-plane machine."""
    lab = state.load(name)
    remote = shlex.join(["env", f"KUBECONFIG={_ADMIN}", "kubectl", *context.args])
    _become([*machines.ssh_command(lab, lab.leader), remote])


@app.command(context_settings=_PASS_ON)
def fault(context: typer.Context, machine: str, name: Name = "lab") -> None:
    """Change what a simulated GPU says: set GPU KEY VALUE, clear, reset, repair, or show.

    GPU is a number or `all`. Every KEY with its limits: scripts/lab fault MACHINE help. What each
    one brings about, and what ends it: docs/lab.md.
    """
    _explain(context, machine)
    lab = state.load(name)
    remote = shlex.join(["gpu-sim", *context.args])
    _become([*machines.ssh_command(lab, lab.get(machine)), remote])


@app.command()
def alerts(
    name: Name = "lab",
    follow: Annotated[bool, typer.Option("--follow", help="And wait for more.")] = False,
    firing: Annotated[bool, typer.Option("--firing", help="Only what fires now.")] = False,
) -> None:
    """What arrived at the lab's (simulated) PagerDuty, Slack and mail server."""
    from lab.alert_receivers import endpoints, service, show

    lab = state.load(name)
    journal = lab.folder / endpoints.JOURNAL
    if not service.is_running(lab):
        print(f"the receiver does not run: scripts/lab --name {name}", file=sys.stderr)
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            for record in show.follow(journal):
                if record["receiver"] != "watchdog":
                    print("\n".join(show.lines(record)), flush=True)
        return
    records = show.read(journal)
    messages = [record for record in records if record["receiver"] != "watchdog"]
    lines = (
        show.firing(messages)
        if firing
        else [line for message in messages for line in show.lines(message)]
    )
    print("\n".join([*lines, show.heartbeat(records, time.time())]))


def _explain(context: typer.Context, machine: str) -> None:
    """Show the help where a machine's name should be; later on, --help is for what runs there."""
    if machine == "--help":
        print(context.get_help())
        raise typer.Exit


def _become(command: list[str]) -> None:
    sys.stdout.flush()
    os.execvp(command[0], command)


@app.command()
def dashboards(
    name: Name = "lab",
    out: Annotated[Path, typer.Option(help="Folder for the pages and pictures.")] = Path(
        "reports/dashboards"
    ),
    hours: Annotated[float, typer.Option(help="Hours that the dashboards look back.")] = 1.0,
) -> None:
    """Draw the Grafana dashboards with the lab's data: HTML, and PNG where chromium is."""
    from lab.dashboard_preview.tunnel import draw_lab as draw

    for path in draw(state.load(name), out, hours):
        print(path)


@app.command()
def power(
    machine: str,
    switch: Annotated[str, typer.Argument(metavar="on|off", help="off cuts the power.")],
    name: Name = "lab",
) -> None:
    """Switch a machine off, as a power cut would, or on again."""
    lab = state.load(name)
    if switch == "off":
        machines.power_off(lab, lab.get(machine))
    elif switch == "on":
        machines.power_on(lab, lab.get(machine))
        machines.wait_for_ssh(lab, lab.get(machine), progress())
    else:
        raise LabError(f"power is on or off, not {switch!r}")


@app.command()
def down(
    name: Annotated[str, typer.Option("--name", envvar="GPUBOOT_LAB")] = "lab",
) -> None:
    """Remove the lab: machines, network, mirror. What was built stays in the cache."""
    from lab.up import down as take_down

    if name not in {lab.name for lab in state.labs()}:
        print(f"there is no lab {name!r}: nothing to remove", file=sys.stderr)
        return
    take_down(state.load(name), progress())


@app.command()
def prune() -> None:
    """Remove from the cache what older versions of this checkout were built from."""
    from lab.up import prune as remove_unused

    remove_unused(progress())


@app.command()
def clean() -> None:
    """Remove every lab, and all that was built and downloaded."""
    from lab.up import clean as remove_all

    remove_all(progress())


def main(arguments: list[str]) -> int:
    """Run the command; what goes wrong is one message on stderr, exit code 1."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "--help"):
        arguments = ["up", *arguments]
    command: Any = typer.main.get_command(app)
    names = [param.opts[0] for param in command.commands["up"].params]
    command.epilog = f"Options without a command are those of up: {', '.join(names)}."
    try:
        command(arguments, prog_name="scripts/lab")
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        print(f"lab: {failures.report(error)}", file=sys.stderr)
        return 1
    return 0
