"""How many commands ran on the machines: what their SSH servers wrote to their journals."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

from lab.state import Lab, LabError, Machine

_WRITTEN_S = 0.3  # a journal has a line a moment after it was logged
# sshd at LogLevel VERBOSE: commands, and the SFTP server that modules are copied with
_STARTED = ("Starting session: command", "Starting session: subsystem")


def count(lab: Lab, machines: Sequence[Machine], since: float) -> int:
    """Commands that the machines' SSH servers started since a time (seconds since the epoch).

    Read from the machines' own files on this host, so that nothing is asked of the machines.
    """
    files = [
        f"--file={path}"
        for machine in machines
        for path in sorted((lab.root(machine) / "var/log/journal").glob("*/*.journal"))
    ]
    if len(files) < len(machines):
        raise LabError("a machine has no journal: its commands cannot be counted")
    command = [
        "journalctl",
        "--quiet",
        "--output=cat",
        "--identifier=sshd",
        f"--since=@{since:.6f}",
    ]
    result = subprocess.run([*command, *files], capture_output=True, text=True)
    if result.returncode != 0:
        raise LabError(f"journalctl: {result.stderr.strip()}")
    return started(result.stdout.splitlines())


def started(lines: Iterable[str]) -> int:
    """How many of sshd's lines tell of a command that was started."""
    return sum(line.startswith(_STARTED) for line in lines)
