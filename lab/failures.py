"""Errors for people: one line on the screen, and a file with all of it."""

from __future__ import annotations

import contextlib
import subprocess
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from lab.state import LabError, state_dir

RESUME_HINT = "the same command goes on from here"


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Turn whatever the block raises into a `LabError` of one line; what it has made is kept."""
    try:
        yield
    except Exception as error:
        raise LabError(report(error)) from error


def report(error: Exception) -> str:
    """Write the error to the log; return the line for the screen: what failed, and what to do."""
    return f"{_cause(error)}; {RESUME_HINT}; {_recorded(error)}"


def _cause(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd[:3]))
        output = error.stderr or error.stdout or b""
        text = output if isinstance(output, str) else output.decode(errors="replace")
        return f"{command} … failed with status {error.returncode}" + _last_line(text)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    text = str(error)
    first = next(iter(text.splitlines()), "")
    if first.endswith(":"):  # then comes the end of what a program printed
        return first.rstrip(":") + _last_line(text)
    is_known = type(error).__module__.partition(".")[0] in ("lab", "gpuboot")
    return first if is_known and first else f"{type(error).__name__}: {first}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""


def _recorded(error: Exception) -> str:
    log = log_file()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = "".join(traceback.format_exception(error))
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as stream:
            stream.write(f"{now}\n{text}\n")
    except OSError as unwritable:
        return f"details cannot be written to {log}: {unwritable.strerror}"
    return f"details: {log}"


def log_file() -> Path:
    """Where errors are kept, the newest last."""
    return state_dir() / "errors.log"
