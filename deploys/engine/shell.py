"""Commands on a host beside operations and facts, and what its shell prints unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra import logger
from pyinfra.api.command import StringCommand
from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from gpuboot.hosts.fact_output import FactOutputError, answer, framed

_NOISE_LENGTH = 80  # characters of the noise
_warned_hosts: set[str] = set()


@dataclass(frozen=True)
class CommandResult:
    """A command that has run: its standard output, and `output`, all it said, for messages."""

    ok: bool
    stdout: str
    output: str


def run_command(host: Host, command: str, **arguments: Any) -> CommandResult:
    """Run a shell command on a host, and take its own output for the answer.

    + arguments: of `host.run_shell_command`
    """
    ok, output = host.run_shell_command(StringCommand(framed(command)), **arguments)
    try:
        parsed = answer(output.stdout_lines)
    except FactOutputError as error:
        return CommandResult(False, "", output.output or str(error))
    warn_of_noise(parsed.noise)
    stdout = "\n".join(parsed.lines)
    return CommandResult(ok, stdout, "\n".join([*parsed.lines, *output.stderr_lines]))


def warn_of_noise(noise: Sequence[str]) -> None:
    """Warn, once, that the current host's shell prints what nobody asked for."""
    host: Host | None = ctx_host.get()  # type: ignore[no-untyped-call]
    if not noise or host is None or host.name in _warned_hosts:
        return
    _warned_hosts.add(host.name)
    logger.warning(
        "%sits shell prints text beside every command, which is passed over: %.*s; remedy: let "
        "~/.bashrc, the profile and what they call print in interactive shells only",
        host.print_prefix, _NOISE_LENGTH, noise[0],
    )  # fmt: skip
