"""`gpuboot diagnose --bundle`: an archive for support, without secrets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuboot.cli import ending
from gpuboot.config.exit_codes import NOT_WRITTEN, OK

if TYPE_CHECKING:
    from gpuboot.diagnose.cause_model import Finding
    from gpuboot.diagnose.facts import Facts
    from gpuboot.diagnose.site_recording import Recording


def write_bundle(
    folder: Path, recording: Recording, findings: Sequence[Finding], facts: Facts
) -> int:
    """Pack what a diagnosis reads, the last reports and the settings; the exit code.

    Passwords, tokens and keys are taken out.
    """
    from gpuboot.diagnose import bundle as archive

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    files = archive.contents(recording, findings, facts, when)
    paths: list[Path] = []
    if not ending.try_write(
        lambda: paths.append(archive.write(folder, recording.site, files)), folder
    ):
        return NOT_WRITTEN
    typer.echo(f"causes found: {len(findings)}; look through it before you send it", err=True)
    print(paths[0])
    return OK
