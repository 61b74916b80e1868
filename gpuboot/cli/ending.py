"""How every command ends: no traceback for what the machine it runs on refuses, and exit codes
from one table.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from gpuboot.config.exit_codes import BROKEN_PIPE, COULD_NOT_TELL, INTERRUPTED, OK, with_unwritten
from gpuboot.config.unwritten import is_full, unwritten

_UNTOUCHED = "interrupted: this command itself changed nothing; run it again"


# commands of earlier releases
_RENAMED = {
    "bundle": "diagnose INVENTORY --bundle FOLDER",
    "history": "report gpus",
    "rules": "docs rules",
    "runs": "report runs",
    "versions": "docs versions",
}


class Commands(TyperGroup):
    """The commands of `gpuboot`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in _RENAMED:
            ctx.fail(f"{args[0]} is now `gpuboot {_RENAMED[args[0]]}`")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        before = {signum: signal.signal(signum, _end) for signum in (signal.SIGTERM, signal.SIGHUP)}
        try:
            _ending(lambda: super(Commands, self).invoke(ctx))
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    _print_error(_UNTOUCHED)
    sys.exit(128 + number)


def _ending(command: Callable[[], object]) -> None:
    """Run a command to its end; its exit code is that of the table."""
    code = OK
    try:
        try:
            command()
        except typer.Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
        raise typer.Exit(BROKEN_PIPE) from None
    except (KeyboardInterrupt, typer.Abort):
        _print_error(_UNTOUCHED)
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        if is_full(error):
            _print_error(unwritten("standard output", error))
            _silence()
            raise typer.Exit(with_unwritten(code, True)) from None
        if error.filename is None:
            raise
        _print_error(f"{error.filename}: {error.strerror}\n    remedy: mend that, then run again")
        raise typer.Exit(COULD_NOT_TELL) from None
    if code:
        raise typer.Exit(code)


def try_write(write: Callable[[], object], path: Path) -> bool:
    """Write a file beside a command's answer. False: it could not be, and standard error says why.

    + write: raises OSError; + path: of the file
    """
    try:
        write()
    except OSError as error:
        _print_error(unwritten(path, error))
        return False
    return True


def try_write_files(folder: Path, contents: Mapping[str, str]) -> bool:
    """Write a folder of files by `try_write`. + contents: path below the folder -> text"""

    def write() -> None:
        for name, text in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return try_write(write, folder)


def _print_error(line: str) -> None:
    with suppress(OSError):  # where nobody reads it, the exit code tells
        typer.echo(line, err=True)


def _silence() -> None:
    """Redirect standard output to nowhere: at its end Python would try to write it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
