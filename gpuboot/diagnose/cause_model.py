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
    def location(self) -> str:
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
        return max(sighting.confidence for sighting in self.sightings)

    def commands(self, leader: str) -> list[tuple[str, str]]:
        """What to type: the node to type it on, and the command; each once."""
        typed: dict[tuple[str, str], None] = {}
        for sighting in self.sightings:
            namespace, _, name = sighting.pod.partition("/")
            defaults = {
                "node": sighting.node,
                "pod": sighting.pod,
                "namespace": namespace,
                "name": name,
            }
            text = self.cause.command.format_map({**defaults, **sighting.values})
            place = {"node": sighting.node, "leader": leader}.get(self.cause.on, self.cause.on)
            typed[place, text] = None
        return list(typed)


def diagnose(facts: Facts, table: Sequence[Cause]) -> tuple[Finding, ...]:
    """The causes of a table that the facts show: roots first, then by the weight of evidence."""
    findings = []
    for cause in table:
        if sightings := tuple(cause.find(facts)):
            findings.append(Finding(cause=cause, sightings=sightings))
    findings = [
        finding for finding in (_drop_named_places(item, findings) for item in findings) if finding
    ]
    linked = [replace(finding, follows=_follows(finding, findings)) for finding in findings]
    below = [name for finding in linked for name in finding.follows]
    return tuple(sorted(linked, key=lambda finding: _rank(finding, below.count(finding.cause.id))))


def findings_about(
    findings: Iterable[Finding], facts: Facts, pod: str, node: str
) -> tuple[Finding, ...]:
    """The findings that concern one pod or node: seen there, where it runs, or cluster-wide."""
    places = {entry.key: entry.node for entry in facts.cluster.pods}
    nodes = {node or places.get(pod, "")} - {""}
    pods = {pod} if pod else {key for key, place in places.items() if place == node}
    relevant = []
    for entry in findings:
        sightings = tuple(
            item
            for item in entry.sightings
            if item.pod in pods
            or (not item.pod and item.node in nodes)
            or not (item.pod or item.node)
        )
        if sightings:
            relevant.append(replace(entry, sightings=sightings))
    return tuple(relevant)


def to_json(findings: Sequence[Finding], leader: str) -> list[dict[str, Any]]:
    """The findings for programs."""
    return [
        {
            "id": finding.cause.id,
            "meaning": finding.cause.meaning,
            "confidence": finding.confidence.word,
            "follows": list(finding.follows),
            "seen": [
                {
                    "node": item.node,
                    "pod": item.pod,
                    "confidence": item.confidence.word,
                    "evidence": list(item.evidence),
                }
                for item in finding.sightings
            ],
            "remedy": finding.cause.remedy,
            "commands": [
                {"on": place, "command": text} for place, text in finding.commands(leader)
            ],
            "page": f"docs/causes.md#{finding.cause.id}",
        }
        for finding in findings
    ]


def _rank(finding: Finding, explained: int) -> tuple[bool, int, int, int, int, str]:
    """Roots first; of these what was seen itself, what explains more, what was seen more often."""
    lines = {line for item in finding.sightings for line in item.evidence}
    count = len(finding.sightings)
    return (
        bool(finding.follows),
        -finding.confidence,
        -explained,
        -count,
        -len(lines),
        finding.cause.id,
    )


def _drop_named_places(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """Return a fallback without the places that other causes name; None where no place is left."""
    if not finding.cause.fallback:
        return finding
    named_places = {
        place
        for candidate in findings
        if not candidate.cause.fallback
        for place in _places(candidate)
    }
    sightings = tuple(
        item for item in finding.sightings if not ({item.pod or item.node} & named_places)
    )
    return replace(finding, sightings=sightings) if sightings else None


def _places(finding: Finding) -> set[str]:
    return {place for item in finding.sightings for place in (item.pod, item.node) if place}


def _follows(finding: Finding, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The causes that explain it: in the same place, or where one of both has no place."""
    nodes = {item.node for item in finding.sightings} - {""}
    return tuple(
        candidate.cause.id
        for candidate in findings
        if finding.cause.id in candidate.cause.explains
        and finding.cause.id != candidate.cause.id
        and any(
            item.explains is None or finding.cause.id in item.explains
            for item in candidate.sightings
        )
        and (
            not (other_nodes := {item.node for item in candidate.sightings} - {""})
            or not nodes
            or other_nodes & nodes
        )
    )
