"""Downloads that a network may fail for a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr
from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.lib import privilege
from deploys.lib.commands import failure, report_failure
from deploys.lib.spans import waiting
from gpuboot.hosts.download_failures import FAILURES, name_of
from gpuboot.hosts.install_failures import InstallFailure, explain
from gpuboot.hosts.transient import PAUSES_S, reason

# failures whose words, such as `not found`, other programs print of other things
_VAGUE = ("", "missing", "mirror")
# inventory names and commands of this run
_ended: set[tuple[str, str]] = set()
_SHOWN = 25  # last lines of a failed command's output


def with_retries(
    command: StringCommand | str,
    what: str,
    stdin: SecretStr | str | None = None,
    needed: bool = True,
    failed: str = "",
    versions: str = "",
    remedy: str = "",
    once: bool = False,
) -> FunctionCommand:
    """A shell command that is tried again while the network fails it, for a minute at least.

    + command: may run any number of times; shown, so it must hold no secret
    + what: what it fetches, for the person who waits
    + stdin: what it reads; shown nowhere
    + needed: the host fails without it; False: that is only told
    + failed: what to say of its failure; "": that `what` is not to be had
    + versions: the shell command that prints which versions there are, for one that is missing
    + remedy: what the person can do where what it printed explains nothing
    + once: not again where it has ended on the same host in this run
    """
    text = command if isinstance(command, str) else command.get_raw_value()
    more: dict[str, Any] = {"stdin": stdin} if stdin else {}
    if not needed:
        more["needed"] = False
    texts = {"failed": failed, "versions": versions, "remedy": remedy}
    more |= {key: value for key, value in texts.items() if value}
    return FunctionCommand(_run_once if once else _run_with_retries, (text, what), more)


def _run_once(state: State, host: Host, command: str, what: str, **more: Any) -> bool:
    if (host.name, command) in _ended:
        return True
    _ended.add((host.name, command))
    return _run_with_retries(state, host, command, what, **more)


def _run_with_retries(
    state: State,
    host: Host,
    command: str,
    what: str,
    stdin: SecretStr | str | None = None,
    needed: bool = True,
    failed: str = "",
    versions: str = "",
    remedy: str = "",
) -> bool:
    arguments = _arguments(host, stdin)
    began = time.monotonic()
    for pause in (*PAUSES_S, 0):
        ok, output = host.run_shell_command(
            StringCommand(command),
            print_output=state.print_output,
            print_input=state.print_input,
            **arguments,
        )
        if ok:
            return True
        cause = reason(output.output)
        if not cause or not pause:
            break
        logger.info(f"{host.print_prefix}waiting for {what}: {cause} (next try in {pause} s)")
        with waiting(f"{what}: {cause}"):
            time.sleep(pause)
    spent = f" in {time.monotonic() - began:.0f} s" if cause else ""
    if not needed:
        why = cause or output.output.strip().rpartition("\n")[2]
        logger.warning(f"{host.print_prefix}{what}: not all could be read{spent}: {why}")
        return True
    explanation = explain(output.output)
    output_lines = output.output_lines[-_SHOWN:]
    if versions and explanation and explanation.version:
        offered = host.run_shell_command(StringCommand(versions), **arguments)[1]
        output_lines = [*output_lines, *offered.output.splitlines()]
    message = f"{failed or f'{what}: not to be had'}{spent}"
    return report_failure(host, _failure_message(message, output_lines, explanation, remedy))


def _arguments(host: Host, stdin: SecretStr | str | None) -> dict[str, Any]:
    arguments = privilege.become_arguments(host)
    if stdin:
        arguments["_stdin"] = stdin.get_secret_value() if isinstance(stdin, SecretStr) else stdin
    return arguments


def _failure_message(
    failed: str, lines: Sequence[str], known_failure: InstallFailure | None, remedy: str = ""
) -> str:
    """The message of a failed command: what it printed, and what that means where it is known."""
    output = "\n".join(lines)
    if known_failure is None and (name := name_of(output)) in _VAGUE:
        return failure(f"{failed}:\n{output}", remedy) if remedy else f"{failed}:\n{output}"
    explanation = known_failure or FAILURES[name]
    return failure(f"{failed}: {explanation.cause}:\n{output}", explanation.remedy)
