"""How a run ends: its exit code, what could not be written on the way, and what a signal ends.

Files of a report are no reason to end a run, nor to hide its verdict: what cannot be written is
told in its last lines, and by an exit code of its own (docs/exit-codes.md).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

import click

from gpuboot.config.exit_codes import BROKEN_PIPE, FAILED, OK, with_unwritten, worst
from gpuboot.config.unwritten import unwritten

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_S = 1.0  # a terminal and the command that began the run may both hand on one Ctrl-C

proof = OK  # exit code of the proof that the run made
# what is not well though no operation failed, as lines -> the exit code that it deserves
shortfalls: dict[str, int] = {}
missing: dict[Path, str] = {}  # place -> why its files are not written, as a line

T = TypeVar("T")

_signal = 0  # that ends the run; 0: none
_ended_at = 0.0


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Note errors of writing files in the block, which the run can do without. + place: folder"""
    try:
        yield
    except OSError as error:
        missing.setdefault(place, unwritten(place, error))


def code(failed: bool) -> int:
    """The run's exit code. + failed: an operation, a host, or the run as a whole"""
    if _signal:
        return 128 + _signal
    exit_code = FAILED if failed else worst([proof, *shortfalls.values()])
    return with_unwritten(exit_code, bool(missing))


def tell_missing() -> None:
    """Tell, once, what could not be written."""
    for line in missing.values():
        click.secho(line, fg="red", err=True)


def by(exit_: Callable[[], None], close: Callable[[], None]) -> Callable[[], NoReturn]:
    """pyinfra's own end of a run, with our exit codes.

    + exit_: raises SystemExit; + close: writes and tells what is still to be told
    """

    def ending() -> NoReturn:
        failed = True
        try:
            exit_()
        except SystemExit as end:
            failed = bool(end.code)
        close()
        sys.exit(code(failed))

    return ending


def watch(describe_remains: Callable[[], str]) -> None:
    """End in order by signals, see `watch_signals`, and when the reader of the output has gone."""
    watch_signals(describe_remains)
    for stream in (sys.stdout, sys.stderr):
        for name in ("write", "flush"):
            setattr(stream, name, _guarded(getattr(stream, name)))


def watch_signals(describe_remains: Callable[[], str]) -> None:
    """End in order by Ctrl-C and SIGTERM: locks are released, the report is written.

    + describe_remains: tells what the run leaves, as a line
    """

    def end(number: int, _frame: FrameType | None) -> None:
        global _signal, _ended_at
        if _signal:
            if time.monotonic() - _ended_at > _SAME_S:
                os._exit(128 + number)
            return
        _signal, _ended_at = number, time.monotonic()
        with suppress(OSError):
            click.echo(f"\n{describe_remains()}", err=True)
        sys.exit(128 + number)

    for signal_number in _SIGNALS:
        signal.signal(signal_number, end)


def _guarded(method: Callable[..., T]) -> Callable[..., T]:
    def guarded(*args: object) -> T:
        global _signal
        try:
            return method(*args)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for number in (1, 2):
                os.dup2(nowhere, number)
            if _signal:
                return method(*args)
            _signal = signal.SIGPIPE
            sys.exit(BROKEN_PIPE)

    return guarded
