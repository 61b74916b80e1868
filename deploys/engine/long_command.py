"""Commands that take minutes: what they said last is told while they run."""

from __future__ import annotations

import shlex
import time
from typing import Any

import gevent
from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import privilege
from deploys.engine.commands import failure, report_failure
from deploys.engine.current_host import current_host
from deploys.engine.shell import run_command

TELL_S = 15.0
_TAIL_LINES = 25  # last lines of a failed command's output
_FOLDER = "/run/gpuboot"
_LOG = f"{_FOLDER}/command.log"


def long_command(command: StringCommand | str, description: str, remedy: str) -> FunctionCommand:
    """A shell command that says now and then how far it is.

    + command: shown, so it must hold no secret
    + description: it does, for the person who waits; + remedy: when it fails
    """
    text = command if isinstance(command, str) else command.get_raw_value()
    return FunctionCommand(_run, (text, description, remedy), {})


def _run(state: State, host: Host, command: str, description: str, remedy: str) -> bool:
    script = f"mkdir -p {_FOLDER}; ( {command} ) >{_LOG} 2>&1; code=$?; cat {_LOG}; exit $code"
    arguments = privilege.become_arguments(host)
    teller = gevent.spawn(_report_progress, host, description, arguments)
    try:
        ok, output = host.run_shell_command(
            StringCommand(f"sh -c {shlex.quote(script)}"),
            print_output=state.print_output,
            print_input=state.print_input,
            **arguments,
        )
    finally:
        teller.kill()
    if ok:
        return True
    tail = "\n".join(output.output_lines[-_TAIL_LINES:])
    return report_failure(host, failure(f"{description}: failed:\n{tail}", remedy))


def _report_progress(host: Host, description: str, arguments: dict[str, Any]) -> None:
    started = time.monotonic()
    while True:
        gevent.sleep(TELL_S)
        try:
            with current_host(host):
                line = run_command(host, f"tail -n 1 {_LOG}", **arguments).stdout
        except (PyinfraError, OSError, EOFError):
            line = ""
        logger.info(
            f"{host.print_prefix}{description}: {time.monotonic() - started:.0f} s; {line.strip()}"
        )
