"""`gpuboot bundle`: an archive for support, without secrets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from gpuboot.cli import ending, runs
from gpuboot.cli.diagnose import recorded
from gpuboot.config.exit_codes import NOT_WRITTEN


def bundle(
    inventory: runs.Inventory,
    to: Annotated[Path, typer.Option("--to", help="Folder for the archive.")] = Path(),
    data: runs.Data = None,
) -> None:
    """Pack what a diagnosis reads, the last reports and the settings into an archive for support.

    Passwords, tokens and keys are taken out. Exit code: 0 written, 2 could not look, 3 could not
    write.
    """
    from gpuboot.diagnose import bundle as archive
    from gpuboot.diagnose import facts as all_facts
    from gpuboot.diagnose import model
    from gpuboot.diagnose.causes import TABLE

    if not to.is_dir():
        runs.stop(f"{to}: there is no such folder\n    remedy: make it, then run again")
    recording = recorded(inventory, data)
    facts = all_facts.of(recording)
    findings = model.diagnose(facts, TABLE)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    files = archive.contents(recording, findings, facts, when)
    paths: list[Path] = []
    if not ending.try_write(lambda: paths.append(archive.write(to, recording.site, files)), to):
        raise typer.Exit(NOT_WRITTEN)
    typer.echo(f"causes found: {len(findings)}; look through it before you send it", err=True)
    print(paths[0])
