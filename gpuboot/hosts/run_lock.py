"""The lock by which one run at a time changes a site: who holds it, and what a refused run says.

It is the file /run/gpuboot/run.lock of each control-plane node, or of the Docker host that runs
Prometheus. A process there holds it (flock) for as long as it hears of its run; the file itself has
the record of the run that took it last, also after that has ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from gpuboot.config.problems import Problem

FOLDER = "/run/gpuboot"
MARK = "##gpuboot-lock##"
ANY = "*"  # in place of a record: whatever is there
# A holder that has not been heard of for so long is gone: its machine lost power or its network.
# One that was killed is noticed at once, since its connection ends.
PATIENCE_S = 60
BEAT_S = 10.0


Outcome = Literal["taken", "held", "changed", "failed"]


@dataclass(frozen=True)
class Holder:
    """A run that took the lock.

    + run: tells it from all other runs
    + user: who began it, as `user@machine`
    + folder: in which
    + command: its command line, without values that may be secret
    """

    run: str
    user: str
    folder: str
    command: str

    def record(self) -> str:
        """The holder as the one line of the lock's file."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(record: str) -> Holder:
        """The holder of a record; one without names where it cannot be read."""
        try:
            fields = json.loads(record)
            return Holder(*(str(fields[key]) for key in ("run", "user", "folder", "command")))
        except (ValueError, TypeError, KeyError):
            return Holder("", "somebody", "an unknown folder", "an unknown command")


@dataclass(frozen=True)
class Answer:
    """What a host said to a run that asked for its lock.

    + outcome: taken; held, by the run of the record; changed, as another run had it since; failed
    + age_s: how old the record is
    + record: of the run that holds it, or had it before; "" for none since the host booted
    + text: why it failed
    """

    outcome: Outcome
    age_s: int = 0
    record: str = ""
    text: str = ""


_OUTCOMES: dict[str, Outcome] = {"taken": "taken", "held": "held", "changed": "changed"}


def answer(lines: Iterable[str]) -> Answer:
    """The answer of deploys/run/lock.sh, in all that its host printed up to it.

    + lines: the last is the answer, unless the command ended without one
    """
    messages = []
    for line in lines:
        before, mark, remainder = line.strip().partition(MARK)
        if before:
            messages.append(before)
        if not mark:
            continue
        word, age, record = (*remainder.split("\t", 2), "", "")[:3]
        if word in _OUTCOMES:
            return Answer(_OUTCOMES[word], int(age), record)
    return Answer("failed", text="; ".join(messages[-3:]) or "its command ended without an answer")


def conflict_problem(host: str, record: str, age_s: int) -> Problem:
    """The problem that another run is at work. + host: inventory name of the host it has locked"""
    holder = Holder.of(record)
    return Problem(
        host,
        f"another run changes this site: {holder.user}, for {_duration(age_s)}, in "
        f"{holder.folder}: {holder.command}",
        "wait until it has ended; a run that was killed leaves the lock at once, one whose machine "
        f"is gone within {PATIENCE_S} s",
    )


def problem(host: str, answer: Answer) -> Problem | None:
    """What keeps a run from going on; None when it has the lock.

    + host: inventory name of the one that answered
    """
    if answer.outcome == "held":
        return conflict_problem(host, answer.record, answer.age_s)
    if answer.outcome == "changed":
        holder = Holder.of(answer.record)
        cause = f"{holder.user} has changed this site since this run read it ({holder.command})"
        booted = "this host has booted since this run read it"
        return Problem(
            host, cause if answer.record else booted, "run again, which reads all hosts anew"
        )
    if answer.outcome == "failed":
        return Problem(
            host,
            f"its lock, by which one run at a time changes a site, cannot be taken: {answer.text}",
            f"see that root can write to {FOLDER} there and has the command flock (util-linux)",
        )
    return None


def _duration(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
