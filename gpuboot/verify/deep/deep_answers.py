"""What became of the tests: plain data, which verdicts read and reports keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Step = Literal["diag", "bandwidth", "collective", "internode"]  # also the links that they decide
Ending = Literal["answered", "hung", "not started", "left out"]
EXIT = "gpuboot: exit "  # the last line of a test: an output without it is not whole


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one test printed, or why it did not.

    + ended: `hung`: it ran until its time was up; `not started`: its pod never ran; `left out`: it
      is not wanted, or cannot be had
    + output: all that its container printed
    + reason: why there is no whole answer; "" where it ended by itself
    + exit: its exit status; None where it did not come to that
    """

    ended: Ending
    output: str = ""
    reason: str = ""
    exit: int | None = None
    seconds: float = 0.0


def finished_answer(output: str, issue: str, seconds: float) -> Answer:
    """The answer of a test whose container has ended. + issue: what Kubernetes says of it"""
    if not output.strip():
        reason = issue or "its pod ended without a word"
        return Answer(ended="not started", reason=reason, seconds=seconds)
    _, marker, trailer = output.rpartition(EXIT)
    words = trailer.split()
    exit_ = int(words[0]) if marker and words and words[0].isdigit() else None
    return Answer(ended="answered", output=output, reason=issue, exit=exit_, seconds=seconds)


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

    @property
    def hangs(self) -> bool:
        return any(answer.ended == "hung" for answer in self.steps.values())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PairAnswer:
    """NCCL between two nodes.

    + uuids: of the GPUs of both
    + hosts: what the output calls a node -> its name: host names and addresses
    + gpus: how many each has
    """

    nodes: tuple[str, str]
    uuids: tuple[str, ...]
    hosts: Mapping[str, str]
    gpus: Mapping[str, int]
    answer: Answer

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class DeepAnswers:
    """All that a run found, or an earlier one kept. Pairs by both of their names."""

    nodes: Mapping[str, NodeAnswers] = field(default_factory=dict)
    pairs: Mapping[tuple[str, str], PairAnswer] = field(default_factory=dict)


def node_from_json(data: Mapping[str, Any]) -> NodeAnswers:
    """The inverse of `NodeAnswers.to_json`. Raises KeyError or TypeError for anything else."""
    steps = {name: Answer(**item) for name, item in data["steps"].items()}
    return NodeAnswers(**{**data, "steps": steps, "uuids": tuple(data["uuids"])})


def pair_from_json(data: Mapping[str, Any]) -> PairAnswer:
    """The inverse of `PairAnswer.to_json`. Raises KeyError, TypeError or ValueError."""
    first, second = data["nodes"]
    overrides = {"nodes": (first, second), "uuids": tuple(data["uuids"])}
    return PairAnswer(**{**data, **overrides, "answer": Answer(**data["answer"])})
