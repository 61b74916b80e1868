"""What operations yield, how they fail, and what they tell the person who watches.

A failure has two lines wherever it is shown: its cause, and below it `    remedy: ...`.
"""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import logger
from pyinfra.api.command import FunctionCommand, PyinfraCommand, QuoteString, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host as current_host

from deploys.engine import answers

# what an operation is
Commands = Generator[str | PyinfraCommand, None, None]

# inventory name and operation -> why it failed; the run's report tells it again at the end
messages: dict[tuple[str, str], str] = {}


def failure(cause: str, remedy: str = "") -> str:
    """The text of a failure.

    + remedy: what the person can do about it; "" where the cause says it already
    """
    return f"{cause}\n    remedy: {remedy}" if remedy else cause


def fail(cause: str, remedy: str = "") -> FunctionCommand:
    """A command that fails its host with cause and remedy, without a traceback."""
    return FunctionCommand(_fail, [failure(cause, remedy)], {})


def _fail(state: State, host: Host, message: str) -> bool:
    return report_failure(host, message)


def report_failure(host: Host, message: str) -> bool:
    """Tell why a host fails. Returns the False by which a FunctionCommand's body says so."""
    if host.executing_op_hash:
        messages[host.name, host.executing_op_hash] = message
    host.log_styled(message, fg="red", log_func=logger.error)
    return False


def shell_message(cause: str, remedy: str = "") -> StringCommand:
    """The shell command that prints cause and remedy to standard error."""
    return StringCommand("printf '%s\\n'", QuoteString(failure(cause, remedy)), ">&2")


def shell_failure(cause: str, remedy: str = "") -> StringCommand:
    """The shell command, for what follows `||`, that fails with cause and remedy."""
    return StringCommand("{", shell_message(cause, remedy), "; exit 1; }")


def executing() -> bool:
    """Whether the run is past its planning: only then is there something to wait for.

    True as well while operations are compared with the hosts as they are, which asks the same.
    """
    return answers.comparing() or bool(current_host.state.is_executing)


def inform(message: str) -> None:
    """Tell something about the current host while the run executes; nothing while it plans."""
    if _executes():
        logger.info(f"{current_host.print_prefix}{message}")


def warn(message: str) -> None:
    """Tell something that the person should act on, when `inform` would tell it."""
    if _executes():
        logger.warning(f"{current_host.print_prefix}{message}")


def _executes() -> bool:
    if answers.comparing():
        answers.mark_message()
        return False
    return executing()
