"""Commands and facts of other hosts than the operation's own, while the run executes."""

from __future__ import annotations

from typing import TypeVar

from gevent.lock import BoundedSemaphore
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.facts import FactBase
from pyinfra.api.host import Host

from deploys.engine import answers, privilege
from deploys.engine.current_host import current_host
from deploys.engine.shell import run_command

# sshd allows ten sessions a connection (MaxSessions), and all joining nodes share this one.
_sessions = BoundedSemaphore(6)

T = TypeVar("T")


class RemoteError(PyinfraError):
    """A command on another host failed; the text holds its output."""


def run(target: Host, command: str, stdin: str = "") -> str:
    """Run a shell command on any host of the inventory and return its standard output.

    + target: the host, which need not be the one whose operation this is
    + command: shown in errors, so it must hold no secret
    + stdin: what the command reads; may be secret, and is shown nowhere

    Raises `RemoteError` when it exits with anything but 0.
    """
    if answers.comparing():
        raise answers.WouldChange
    with _sessions, current_host(target) as current:
        if not current.connected:  # outside `--limit`
            current.connect(raise_exceptions=True)
        arguments = privilege.become_arguments(current)
        if stdin:
            arguments["_stdin"] = stdin
        try:
            result = run_command(
                current, command, print_output=False, print_input=False, **arguments
            )
        finally:
            answers.forget(current)
    if not result.ok:
        raise RemoteError(f"{target.name}: {command}: {result.output}")
    return result.stdout


def read_fact(target: Host, fact: type[FactBase[T]], **arguments: object) -> T:
    """A fact of any host of the inventory."""
    if answers.comparing():
        return answers.read_from(target, fact, **arguments)
    with _sessions, current_host(target) as current:
        return answers.read_from(current, fact, **arguments)
