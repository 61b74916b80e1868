"""Many facts of a host by one command."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase

from deploys.engine.framed import Framed

# Bytes of a command line, quoted as sudo gets it: it is one argument of the host's shell, of which
# Linux allows 131,072 (MAX_ARG_STRLEN). A control plane is asked for 70,000 in one command.
_LONGEST = 100_000
_MARK = "##gpuboot-fact##"
_JOIN = 'wait; cat "$lane"'
# in memory where there is such a place: releases' values may hold secrets. Where an API server does
# not answer one of them, api.sh says so beside it, and no other asks again
_SILENCE = """\
lane=$(mktemp -p /run gpuboot.XXXXXX 2>/dev/null || mktemp) || exit 1
trap 'rm -f "$lane" "$lane.silence"' EXIT
export GPUBOOT_SILENCE="$lane.silence\""""


@dataclass(frozen=True)
class Request:
    """A fact, and the arguments it is asked with."""

    fact: type[Framed[Any]]
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, fact: type[FactBase[Any]], arguments: dict[str, Any]) -> Request | None:
        """The request; None for a fact that has to be read by itself.

        That is one without a frame around its output, or with arguments of pyinfra's own (_stdin).
        """
        if not issubclass(fact, Framed) or any(key.startswith("_") for key in arguments):
            return None
        return cls(fact, tuple((key, _hashable(arguments[key])) for key in sorted(arguments)))

    @property
    def command(self) -> str:
        """The fact's own command."""
        return str(self.fact().command(**dict(self.arguments)))


class Unanswered(Exception):
    """A fact's command failed, or its output could not be read."""


_MISSING = Unanswered("the host did not answer")


@dataclass
class _Reading:
    """A command of a batch, and the places of the requests that it answers."""

    fact: type[Framed[Any]]
    arguments: Mapping[str, Any]
    places: list[int]

    def answers(self, requests: Sequence[Request], lines: list[str], status: str) -> list[Any]:
        try:
            if status != "0":
                raise FactProcessError(f"its command ended with {status}")
            combined = self.fact().value(lines)
            if len(self.places) == 1:
                return [combined]
            own_requests = [requests[place] for place in self.places]
            return [item.fact.part(combined, dict(item.arguments)) for item in own_requests]
        except FactProcessError as error:
            return [Unanswered(str(error))] * len(self.places)


class Batch(Framed[list[Any]]):
    """The answers to requests, in their order; `Unanswered` in the place of one that failed.

    Each command runs in a shell of its own, so that none ends or changes another. All of them are
    in one frame. Requests of a fact that can be merged are one command. What asks the cluster waits
    for the API server, so it runs beside the rest.
    """

    @staticmethod
    def default() -> list[Any]:
        return []

    def command(self, requests: Sequence[Request]) -> str:
        self._requests = requests
        self._readings = _readings(requests)
        host_lane: list[str] = []
        of_cluster: list[str] = []
        for number, reading in enumerate(self._readings):
            lane = of_cluster if reading.fact.of_cluster else host_lane
            lane.append(
                f"( {reading.fact().bare_command(reading.arguments).strip()}\n)"
                f"; printf '\\n{_MARK}%s %s\\n' {number} $?"
            )
        if not of_cluster:
            return "\n".join(host_lane)
        if not host_lane:
            return "\n".join([_SILENCE, *of_cluster])
        return "\n".join([_SILENCE, "{", *of_cluster, '} >"$lane" &', *host_lane, _JOIN])

    def process(self, output: list[str]) -> list[Any]:
        answers: dict[int, Any] = {}
        lines: list[str] = []
        index = 0
        for line in output:
            _, mark, text = line.partition(_MARK)
            if not mark:
                lines.append(line)
                continue
            number, _, status = text.partition(" ")
            if number != str(index):
                raise FactProcessError("the answers are not in the order of the requests")
            if lines[-1:] == [""]:  # of our own, for a command without a newline at its end
                lines.pop()
            reading = self._readings[index]
            part_answers = reading.answers(self._requests, lines, status)
            answers |= zip(reading.places, part_answers, strict=True)
            lines, index = [], index + 1
        return [answers.get(place, _MISSING) for place in range(len(self._requests))]


def _readings(requests: Sequence[Request]) -> list[_Reading]:
    """The commands for requests, in their order; merged ones come with the first of them.

    What asks the cluster is last: its answers come after all others.
    """
    places: dict[type[Framed[Any]], list[int]] = defaultdict(list)
    for place, request in enumerate(requests):
        places[request.fact].append(place)
    readings = []
    for fact, fact_places in places.items():
        arguments = [dict(requests[place].arguments) for place in fact_places]
        merged = fact.merged(arguments) if len(fact_places) > 1 else None
        if merged:
            readings.append(_Reading(*merged, fact_places))
        else:
            readings += [
                _Reading(fact, item, [place])
                for item, place in zip(arguments, fact_places, strict=True)
            ]
    return sorted(readings, key=lambda reading: reading.fact.of_cluster)


def parts(requests: Sequence[Request]) -> Iterator[tuple[Request, ...]]:
    """Requests in batches, each short enough for one command line."""
    part: list[Request] = []
    size = 0
    for request in requests:
        length = _length(request, part)
        if part and size + length > _LONGEST:
            yield tuple(part)
            part, size = [], 0
        part.append(request)
        size += length
    if part:
        yield tuple(part)


def _length(request: Request, part: Sequence[Request]) -> int:
    """Bytes that it adds to a command line: one that merges with another of it, its arguments."""
    values = dict(request.arguments)
    if any(item.fact is request.fact for item in part) and request.fact.merged([values, values]):
        return len(str(request.arguments))
    return len(shlex.quote(request.command))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return value
