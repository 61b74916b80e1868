"""Checks that are one file: what a command on a host prints, and what that says of its GPUs.

Each module of `of_hosts` has a `CHECK`, and is found there. It is a link of the chain, of the
report and of docs/checks.md; its command is run with what a verification reads of a host anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gpuboot.verify.checks.link import Link
from gpuboot.verify.checks.one_file import CheckVerdict

TIMED_OUT = 124  # exit status of timeout(1)


@dataclass(frozen=True)
class CommandOutput:
    """What a check's command printed on a host.

    + exit: its status
    + requested, answered: our time before and after, seconds since 1970; 0: nobody noted it
    """

    text: str = ""
    exit: int = 0
    requested: float = 0.0
    answered: float = 0.0


@dataclass(frozen=True, kw_only=True)
class HostCheck:
    """One check.

    + link: its name, what it proves, where its facts come from, what fails it, and the remedy
    + behind: the link that it follows in the chain
    + command: POSIX sh, run as root; it changes nothing. It has `timeout_s` to end
    + evaluate: what that says of a host, whose working GPUs are given as UUID -> model; nothing
      where the link does not concern it. What does not pass has a remedy
    """

    link: Link
    behind: str
    command: str
    evaluate: Callable[[Mapping[str, str], CommandOutput], Iterable[CheckVerdict]]
    timeout_s: int = 30
