"""A cause as data, what was seen of it, and in which order causes are told: by evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from string import Formatter
from typing import Any

from gpuboot.diagnose.facts import Facts


class Confidence(IntEnum):
    """How surely what was seen comes from the cause.

    + POSSIBLE: it fits, and so would other causes
    + LIKELY: the symptom is its own, and the state behind it was not seen
    + CERTAIN: the state that is the cause was seen itself
    """

    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A cause in one place.

    + node, pod: where; "" for the whole cluster. pod: `namespace/name`
    + evidence: what was seen, a line each, with the values
    + values: for the remedy's command, beside node, host, pod, namespace and name
    + explains: which of the causes that may follow do from this place; None: all
    """

    node: str = ""
    pod: str = ""
    evidence: tuple[str, ...]
    confidence: Confidence = Confidence.CERTAIN
    values: Mapping[str, str] = field(default_factory=dict)
    explains: tuple[str, ...] | None = None

    @property
    def where(self) -> str:
        """The place in a few words."""
        if self.pod:
            return f"{self.pod} on {self.node}" if self.node else self.pod
        return self.node or "the cluster"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Something that can be wrong.

    + id: its name, also the heading of docs/causes.md
    + meaning: what is wrong, in one line
    + find: where it is, by what is known; nothing where it is not
    + remedy: what a person does about it, in a sentence
    + command: what to type; `{node}` and the like are filled in from the sighting
    + on: where to type it: `node`, `leader` for kubectl, or `here`, on the control machine
    + explains: ids of the causes that follow from it in the same place
    + fallback: it is told only where nothing else is known of the place
    """

    id: str
    meaning: str
    find: Callable[[Facts], Iterable[Sighting]]
    remedy: str
    command: str
    on: str = "leader"
    explains: tuple[str, ...] = ()
    fallback: bool = False

    @property
    def fields(self) -> set[str]:
        """What its command wants to know of a sighting."""
        return {name for _, name, _, _ in Formatter().parse(self.command) if name}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A cause that was found. + follows: ids of found causes that explain it"""

    cause: Cause
    sightings: tuple[Sighting, ...]
    follows: tuple[str, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return max(one.confidence for one in self.sightings)

    def commands(self, leader: str) -> list[tuple[str, str]]:
        """What to type: the node to type it on, and the command; each once."""
        typed: dict[tuple[str, str], None] = {}
        for one in self.sightings:
            namespace, _, name = one.pod.partition("/")
            known = {"node": one.node, "pod": one.pod, "namespace": namespace, "name": name}
            text = self.cause.command.format_map({**known, **one.values})
            place = {"node": one.node, "leader": leader}.get(self.cause.on, self.cause.on)
            typed[place, text] = None
        return list(typed)


def diagnose(facts: Facts, table: Sequence[Cause]) -> tuple[Finding, ...]:
    """The causes of a table that the facts show: roots first, then by the weight of evidence."""
    found = []
    for cause in table:
        if sightings := tuple(cause.find(facts)):
            found.append(Finding(cause=cause, sightings=sightings))
    found = [one for one in (_without_known(item, found) for item in found) if one]
    linked = [replace(one, follows=_follows(one, found)) for one in found]
    below = [name for one in linked for name in one.follows]
    return tuple(sorted(linked, key=lambda one: _weight(one, below.count(one.cause.id))))


def about(findings: Iterable[Finding], facts: Facts, pod: str, node: str) -> tuple[Finding, ...]:
    """Those that concern one pod or node: seen there, where it runs, or in the whole cluster."""
    places = {one.key: one.node for one in facts.cluster.pods}
    nodes = {node or places.get(pod, "")} - {""}
    pods = {pod} if pod else {key for key, place in places.items() if place == node}
    kept = []
    for one in findings:
        seen = tuple(
            item
            for item in one.sightings
            if item.pod in pods
            or (not item.pod and item.node in nodes)
            or not (item.pod or item.node)
        )
        if seen:
            kept.append(replace(one, sightings=seen))
    return tuple(kept)


def to_json(findings: Sequence[Finding], leader: str) -> list[dict[str, Any]]:
    """The findings for programs."""
    return [
        {
            "id": one.cause.id,
            "meaning": one.cause.meaning,
            "confidence": one.confidence.word,
            "follows": list(one.follows),
            "seen": [
                {
                    "node": item.node,
                    "pod": item.pod,
                    "confidence": item.confidence.word,
                    "evidence": list(item.evidence),
                }
                for item in one.sightings
            ],
            "remedy": one.cause.remedy,
            "commands": [{"on": place, "command": text} for place, text in one.commands(leader)],
            "page": f"docs/causes.md#{one.cause.id}",
        }
        for one in findings
    ]


def _weight(one: Finding, explained: int) -> tuple[bool, int, int, int, int, str]:
    """Roots first; of these what was seen itself, what explains more, what was seen more often."""
    lines = {line for item in one.sightings for line in item.evidence}
    seen = len(one.sightings)
    return bool(one.follows), -one.confidence, -explained, -seen, -len(lines), one.cause.id


def _without_known(one: Finding, found: Sequence[Finding]) -> Finding | None:
    """A fallback loses the places that another cause names."""
    if not one.cause.fallback:
        return one
    named = {place for other in found if not other.cause.fallback for place in _places(other)}
    left = tuple(item for item in one.sightings if not ({item.pod or item.node} & named))
    return replace(one, sightings=left) if left else None


def _places(one: Finding) -> set[str]:
    return {place for item in one.sightings for place in (item.pod, item.node) if place}


def _follows(one: Finding, found: Sequence[Finding]) -> tuple[str, ...]:
    """The causes that explain it: in the same place, or where one of both has no place."""
    nodes = {item.node for item in one.sightings} - {""}
    return tuple(
        other.cause.id
        for other in found
        if one.cause.id in other.cause.explains
        and one.cause.id != other.cause.id
        and any(item.explains is None or one.cause.id in item.explains for item in other.sightings)
        and (
            not (theirs := {item.node for item in other.sightings} - {""})
            or not nodes
            or theirs & nodes
        )
    )
