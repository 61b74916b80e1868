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

from deploys.lib import privilege
from deploys.lib.commands import failure, report_failure
from deploys.lib.current_host import current_host
from deploys.lib.shell import run_command

TELL_S = 15.0
_SHOWN = 25  # last lines of a failed command's output
_FOLDER = "/run/gpuboot"
_LOG = f"{_FOLDER}/command.log"


def long_command(command: StringCommand | str, what: str, remedy: str) -> FunctionCommand:
    """A shell command that says now and then how far it is.

    + command: shown, so it must hold no secret
    + what: it does, for the person who waits; + remedy: when it fails
    """
    text = command if isinstance(command, str) else command.get_raw_value()
    return FunctionCommand(_run, (text, what, remedy), {})


def _run(state: State, host: Host, command: str, what: str, remedy: str) -> bool:
    script = f"mkdir -p {_FOLDER}; ( {command} ) >{_LOG} 2>&1; code=$?; cat {_LOG}; exit $code"
    arguments = privilege.become_arguments(host)
    teller = gevent.spawn(_tell, host, what, arguments)
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
    said = "\n".join(output.output_lines[-_SHOWN:])
    return report_failure(host, failure(f"{what}: failed:\n{said}", remedy))


def _tell(host: Host, what: str, arguments: dict[str, Any]) -> None:
    began = time.monotonic()
    while True:
        gevent.sleep(TELL_S)
        try:
            with current_host(host):
                line = run_command(host, f"tail -n 1 {_LOG}", **arguments).stdout
        except (PyinfraError, OSError, EOFError):
            line = ""
        logger.info(f"{host.print_prefix}{what}: {time.monotonic() - began:.0f} s; {line.strip()}")
