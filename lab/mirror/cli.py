"""The `scripts/lab mirror` commands: break and restore what a lab's machines download from."""

from __future__ import annotations

from typing import Annotated

import typer

from lab import state
from lab.mirror import docroot, service
from lab.state import Lab, LabError

app = typer.Typer(help="Break and restore the lab's mirror.")

Name = Annotated[str, typer.Option("--name", envvar="GPUBOOT_LAB", help="The lab's name.")]


def _lab_with_mirror(name: str) -> Lab:
    lab = state.load(name)
    if not lab.docroot.exists():
        raise LabError(f"lab {name} has no mirror yet: scripts/lab --name {name} makes it")
    return lab


@app.callback(invoke_without_command=True)
def of_lab(context: typer.Context, name: Name = "lab") -> None:
    context.obj = name
    if context.invoked_subcommand is None:
        print(_lab_with_mirror(name).docroot)


@app.command("start")
def start(context: typer.Context) -> None:
    """Start the web server."""
    service.start(_lab_with_mirror(context.obj))


@app.command("stop")
def stop(context: typer.Context) -> None:
    """Stop the web server."""
    service.stop(_lab_with_mirror(context.obj))


@app.command("corrupt")
def corrupt(context: typer.Context, path: str) -> None:
    """Flip one byte of a served file (PATH below the docroot; of a folder, its largest file)."""
    print(f"corrupted {docroot.corrupt(_lab_with_mirror(context.obj), path)}")


@app.command("missign")
def missign(context: typer.Context, repository: str) -> None:
    """Sign an apt repository (cuda, docker, kubernetes, toolkit, debian) with a wrong key."""
    docroot.missign(_lab_with_mirror(context.obj), repository)


@app.command("withhold")
def withhold(context: typer.Context, repository: str, version: str) -> None:
    """Serve an apt repository as it was before the release of VERSION."""
    count = docroot.withhold(_lab_with_mirror(context.obj), repository, version)
    print(f"{repository}: {count} packages of {version} are not released yet")


@app.command("restore")
def restore(context: typer.Context) -> None:
    """Undo corrupt, missign and withhold."""
    docroot.restore(_lab_with_mirror(context.obj))
