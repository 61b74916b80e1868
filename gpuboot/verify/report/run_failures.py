"""What failed in a run, and what of a verification follows from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpuboot.verify.findings import Finding

_MAX_MESSAGE = 160


# a name and password within an address, as programs repeat it in their errors
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]+(?=@)")


def masked(message: str) -> str:
    """A message without the credentials of the addresses in it."""
    return _CREDENTIALS.sub("***", message)


@dataclass(frozen=True)
class Failure:
    """An operation that failed on one host.

    + operation: phase and name
    + message: what it said, several lines; "" when it said nothing
    """

    operation: str
    message: str

    @property
    def line(self) -> str:
        """Operation and the first line of its message."""
        first = next((line.strip() for line in self.message.splitlines() if line.strip()), "")
        if len(first) > _MAX_MESSAGE:
            first = f"{first[: _MAX_MESSAGE - 1]}…"
        return f"{self.operation}: {first}" if first else self.operation


def with_run_failures(
    findings: Iterable[Finding], failures: Mapping[str, Failure]
) -> tuple[Finding, ...]:
    """The findings; where a node's deployment failed in this run, fixing that comes first.

    + failures: node -> what failed there first; the steps after it were never tried, so a remedy
      that says to run the deployment says to run what has just failed
    """
    return tuple(
        replace(item, remedy=_fix_first(failures[item.node], item.remedy))
        if item.remedy and item.node in failures
        else item
        for item in findings
    )


def _fix_first(failure: Failure, remedy: str) -> str:
    return f"first fix what failed on this host in this run: {failure.line}; then {remedy}"
