"""A host that does not tell what a run has to compare: the run ends before it changes anything.

pyinfra fails such a host while it prepares, says why in lines of its log, and asks a person or ends
by a traceback. The lines are kept here, so that the end names the host, the question and the cause.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable

import click
from pyinfra import logger
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import State
from pyinfra_cli.exceptions import CliError, UnexpectedExternalError

from deploys.engine.connections import unreachable
from deploys.engine.start_problems import refusal
from gpuboot.cluster.api import ClusterError
from gpuboot.config.exit_codes import COULD_NOT_TELL
from gpuboot.config.problems import Problem

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"^\s*\[(?P<host>[^]]+)\]\s+(?P<text>.+)$")
_QUESTION = re.compile(r"^Error: could not \w+ fact: (?:\w+\.)*(?P<fact>\w+) ?(?P<arguments>.*)$")
_REMEDY = "`gpuboot diagnose INVENTORY` finds out why; mend that, then run again"


class UnansweredError(CliError):  # type: ignore[misc]  # pyinfra's command line has no types
    """What a run would change cannot be told: hosts gave no answer."""

    exit_code = COULD_NOT_TELL


class _Errors(logging.Handler):
    """Keeps what pyinfra logs as errors, by host."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: dict[str, list[str]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        if match := _LINE.match(_COLOURS.sub("", record.getMessage())):
            self.lines[match["host"]].append(match["text"].strip())


def explain_unanswered(load: Callable[..., None]) -> Callable[..., None]:
    """Wrap the loading of a deploy file: where a host does not answer it ends in words.

    + load: pyinfra's own, which calls the deploy for each host
    """

    def loading(state: State, filename: str) -> None:
        errors = _Errors()
        logger.addHandler(errors)
        try:
            load(state, filename)
        except UnexpectedExternalError as error:
            if isinstance(error.exception, click.ClickException):
                raise error.exception from None
            if isinstance(error.exception, ClusterError):
                problem = Problem("", f"the cluster does not answer: {error.exception}", _REMEDY)
                raise UnansweredError(refusal([problem])) from None
            raise
        except PyinfraError as error:
            silent = [host.name for host in state.failed_hosts if host.name not in unreachable]
            if type(error) is not PyinfraError or not silent:  # others have words of their own
                raise
            problems = [Problem(name, cause(errors.lines[name]), _REMEDY) for name in silent]
            raise UnansweredError(refusal(problems)) from None
        finally:
            logger.removeHandler(errors)

    return loading


def cause(lines: list[str]) -> str:
    """What a host did not tell, and why. + lines: of pyinfra's log, about this host"""
    messages = [line for line in lines if not _QUESTION.match(line)]
    questions = [match for line in lines if (match := _QUESTION.match(line))]
    reason = (
        re.sub(r"^(\w+Error|\w+Exception): ", "", messages[-1]) if messages else "it gave no reason"
    )
    if not questions:
        return f"does not answer: {reason}"
    subject = f"{questions[-1]['fact']} {questions[-1]['arguments']}".strip()
    return f"does not answer what is asked ({subject}): {reason}"
