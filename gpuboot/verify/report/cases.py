"""Groups findings into cases: a GPU's lowest broken link, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuboot.verify.findings import LINKS, NOT_REACHED, ROW_LINKS, Finding, Status, worst

_ORDER: tuple[Status, ...] = ("fail", "unknown", "not_covered")
_LINK = {link: position for position, link in enumerate(LINKS)}


@dataclass(frozen=True)
class Step:
    """What was found at one link, or the same at several.

    + details: several where one remedy serves all
    """

    links: tuple[str, ...]
    status: Status
    details: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class Location:
    """Where a case is.

    + node: "" for the cluster
    + uuids: the GPUs of that node; empty when it is about the node itself
    """

    node: str
    uuids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A fault, wherever it is found in the same way.

    + cause: what to fix first
    + later_steps: what else was found at the same GPU, node or link; mostly follows from the cause
    + locations: where
    """

    cause: Step
    later_steps: tuple[Step, ...]
    locations: tuple[Location, ...]

    @property
    def status(self) -> Status:
        return self.cause.status

    @property
    def other_links(self) -> tuple[str, ...]:
        return tuple(link for step in self.later_steps for link in step.links)


def cases(findings: Iterable[Finding], parents: Mapping[str, str] | None = None) -> list[Case]:
    """Everything that did not pass, failures first, then what gave no answer, then the rest.

    + parents: MIG device -> its GPU, by UUID
    """
    not_passed = [item for item in findings if item.status != "pass"]
    chain = [item for item in not_passed if item.link in ROW_LINKS]
    places_by_steps: dict[tuple[Step, ...], list[Location]] = {}
    for node, uuid, of_subject in _by_subject(chain, parents or {}):
        places_by_steps.setdefault(_steps(of_subject), []).append(
            Location(node, (uuid,) if uuid else ())
        )
    result = [
        Case(steps[0], steps[1:], _merge_locations(places))
        for steps, places in places_by_steps.items()
    ]
    result += _cluster_cases([item for item in not_passed if item.link not in ROW_LINKS])
    return sorted(result, key=lambda case: (_ORDER.index(case.status), _LINK[case.cause.links[0]]))


def _cluster_cases(not_passed: Iterable[Finding]) -> list[Case]:
    """A case for all failures of the cluster's links that one remedy serves."""
    groups: dict[tuple[str, Status, str], list[Finding]] = {}
    for item in not_passed:
        groups.setdefault((item.link, item.status, item.remedy), []).append(item)
    return [
        Case(
            Step(
                (link,), status, tuple(dict.fromkeys(finding.detail for finding in group)), remedy
            ),
            (),
            _merge_locations(
                Location(finding.node, (finding.gpu_uuid,) if finding.gpu_uuid else ())
                for finding in group
            ),
        )
        for (link, status, remedy), group in groups.items()
    ]


def _by_subject(
    not_passed: Sequence[Finding], parents: Mapping[str, str]
) -> Iterable[tuple[str, str, list[Finding]]]:
    """(node, GPU or "", what is wrong with it), without what only follows from node or GPU."""
    by_subject: dict[tuple[str, str], list[Finding]] = {}
    for item in not_passed:
        by_subject.setdefault((item.node, item.gpu_uuid or ""), []).append(item)
    for (node, uuid), of_subject in by_subject.items():
        below = {(node, ""), (node, parents.get(uuid, ""))} if uuid else set()
        unreached = all(item.detail == NOT_REACHED for item in of_subject)
        if not (unreached and below & by_subject.keys()):
            yield node, uuid, of_subject


def _steps(findings: Sequence[Finding]) -> tuple[Step, ...]:
    """The steps of a case: the cause, the lowest of the gravest, then the others upwards."""
    status = worst(findings)
    ordered = sorted(findings, key=lambda item: (item.status != status, _LINK[item.link]))
    cause, *remaining = ordered
    links_by_step: dict[tuple[Status, str, str], list[str]] = {
        (cause.status, cause.detail, cause.remedy): [cause.link]
    }
    for item in sorted(remaining, key=lambda item: _LINK[item.link]):
        links_by_step.setdefault((item.status, item.detail, item.remedy), []).append(item.link)
    return tuple(
        Step(tuple(dict.fromkeys(links)), status, (detail,), remedy)
        for (status, detail, remedy), links in links_by_step.items()
    )


def _merge_locations(places: Iterable[Location]) -> tuple[Location, ...]:
    by_node: dict[str, list[str]] = {}
    for place in places:
        by_node.setdefault(place.node, []).extend(place.uuids)
    return tuple(Location(node, tuple(uuids)) for node, uuids in by_node.items())
