"""What became of the tests of one node: plain data, which verdicts read and reports keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Step = Literal["diag", "bandwidth", "collective"]  # also the links that they decide
Ended = Literal["answered", "hung", "not started", "left out"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one test printed, or why it did not.

    + ended: `hung`: it ran until its time was up; `not started`: its pod never ran; `left out`: it
      is not wanted, or cannot be had
    + output: all that its container printed
    + reason: why there is no whole answer; "" where it ended by itself
    + exit: its exit status; None where it did not come to that
    """

    ended: Ended
    output: str = ""
    reason: str = ""
    exit: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class NodeAnswers:
    """All tests of one node.

    + uuids: of its GPUs, in the order in which its containers number them
    + skipped: why none was tried; "" where they were
    + samples: what `load.COMMAND` printed meanwhile
    """

    node: str
    uuids: tuple[str, ...] = ()
    skipped: str = ""
    steps: Mapping[Step, Answer] = field(default_factory=dict)
    samples: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(data: Mapping[str, Any]) -> NodeAnswers:
    """The inverse of `NodeAnswers.to_json`. Raises KeyError or TypeError for anything else."""
    steps = {name: Answer(**item) for name, item in data["steps"].items()}
    return NodeAnswers(**{**data, "steps": steps, "uuids": tuple(data["uuids"])})
