"""Downloads that a network may fail for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import SecretStr
from pyinfra import logger
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import privilege
from deploys.engine.commands import failure, report_failure
from deploys.engine.spans import waiting
from gpuboot.hosts.failures import FAILURES, Failure, explain, name_of
from gpuboot.hosts.transient import PAUSES_S, reason

# failures whose words, such as `not found`, other programs print of other things
_VAGUE = ("", "missing", "mirror")
# inventory names and commands of this run
_attempted: set[tuple[str, str]] = set()
_TAIL_LINES = 25  # last lines of a failed command's output


def with_retries(
    command: StringCommand | str,
    description: str,
    stdin: SecretStr | str | None = None,
    needed: bool = True,
    failed: str = "",
    versions: str = "",
    remedy: str = "",
    once: bool = False,
    on_success: Callable[[str], None] | None = None,
) -> FunctionCommand:
    """A shell command that is tried again while the network fails it, for a minute at least.

    + command: may run any number of times; shown, so it must hold no secret
    + description: what it fetches, for the person who waits
    + stdin: what it reads; shown nowhere
    + needed: the host fails without it; False: that is only told
    + failed: what to say of its failure; "": that `description` is not to be had
    + versions: the shell command that prints which versions there are, for one that is missing
    + remedy: what the person can do where what it printed explains nothing
    + once: not again where it has ended on the same host in this run
    + on_success: called with what it printed on standard output, once it has succeeded
    """
    text = command if isinstance(command, str) else command.get_raw_value()
    options: dict[str, Any] = {"stdin": stdin} if stdin else {}
    if on_success:
        options["on_success"] = on_success
    if not needed:
        options["needed"] = False
    texts = {"failed": failed, "versions": versions, "remedy": remedy}
    options |= {key: value for key, value in texts.items() if value}
    return FunctionCommand(_run_once if once else _run_with_retries, (text, description), options)


def _run_once(state: State, host: Host, command: str, description: str, **options: Any) -> bool:
    if (host.name, command) in _attempted:
        return True
    _attempted.add((host.name, command))
    return _run_with_retries(state, host, command, description, **options)


def _run_with_retries(
    state: State,
    host: Host,
    command: str,
    description: str,
    stdin: SecretStr | str | None = None,
    needed: bool = True,
    failed: str = "",
    versions: str = "",
    remedy: str = "",
    on_success: Callable[[str], None] | None = None,
) -> bool:
    arguments = _arguments(host, stdin)
    started = time.monotonic()
    for pause in (*PAUSES_S, 0):
        ok, output = host.run_shell_command(
            StringCommand(command),
            print_output=state.print_output,
            print_input=state.print_input,
            **arguments,
        )
        if ok:
            return _finished(on_success, output.stdout)
        cause = reason(output.output)
        if not cause or not pause:
            break
        _wait(host, f"{description}: {cause}", pause)
    duration = f" in {time.monotonic() - started:.0f} s" if cause else ""
    if not needed:
        warning = cause or output.output.strip().rpartition("\n")[2]
        prefix = f"{host.print_prefix}{description}"
        logger.warning(f"{prefix}: not all could be read{duration}: {warning}")
        return True
    explanation = explain(output.output)
    output_lines = output.output_lines[-_TAIL_LINES:]
    if versions and explanation and explanation.version:
        version_listing = host.run_shell_command(StringCommand(versions), **arguments)[1]
        output_lines = [*output_lines, *version_listing.output.splitlines()]
    message = f"{failed or f'{description}: not to be had'}{duration}"
    return report_failure(host, _failure_message(message, output_lines, explanation, remedy))


def _finished(on_success: Callable[[str], None] | None, output: str) -> bool:
    if on_success:
        on_success(output)
    return True


def _wait(host: Host, reason: str, pause: float) -> None:
    logger.info(f"{host.print_prefix}waiting for {reason} (next try in {pause} s)")
    with waiting(reason):
        time.sleep(pause)


def _arguments(host: Host, stdin: SecretStr | str | None) -> dict[str, Any]:
    arguments = privilege.become_arguments(host)
    if stdin:
        arguments["_stdin"] = stdin.get_secret_value() if isinstance(stdin, SecretStr) else stdin
    return arguments


def _failure_message(
    failed: str, lines: Sequence[str], known_failure: Failure | None, remedy: str = ""
) -> str:
    """The message of a failed command: what it printed, and what that means where it is known."""
    output = "\n".join(lines)
    if known_failure is None and (name := name_of(output)) in _VAGUE:
        return failure(f"{failed}:\n{output}", remedy) if remedy else f"{failed}:\n{output}"
    explanation = known_failure or FAILURES[name]
    return failure(f"{failed}: {explanation.cause}:\n{output}", explanation.remedy)
