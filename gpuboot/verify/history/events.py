"""What a verification adds to the history of GPUs, and what that history says.

Only what changed is kept: a GPU that is proven every day for a year has one line. When its cluster
was verified last stands in the cluster's own file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpuboot.verify.report.report_model import GpuRow, Report

Kind = Literal["first seen", "moved", "gone", "back", "failed", "proven"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A change in the life of a GPU, as a verification saw it.

    + at: when that verification began: UTC, ISO 8601
    + cluster, node, pci: where it was then
    + detail: e.g. which links failed, or which GPU it replaced
    + simulated: the GPU is one of the lab
    """

    at: str
    kind: Kind
    cluster: str
    node: str
    pci: str
    detail: str = ""
    name: str = ""
    simulated: bool = False

    @property
    def place(self) -> tuple[str, str, str]:
        return self.cluster, self.node, self.pci


@dataclass(frozen=True)
class History:
    """All that is known of one GPU.

    + events: the oldest first; at least one
    """

    uuid: str
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        return next((event.name for event in self.events if event.name), "")

    @property
    def place(self) -> tuple[str, str, str]:
        """Cluster, node and PCI address where it was seen last."""
        return self.events[-1].place

    @property
    def is_gone(self) -> bool:
        """Whether it was no longer there when its node was read last."""
        kinds: tuple[Kind, ...] = ("first seen", "moved", "back", "gone")
        return next(event.kind for event in reversed(self.events) if event.kind in kinds) == "gone"

    @property
    def state(self) -> Event | None:
        """How it failed or that it was proven, whichever came last; None: neither yet."""
        of_state = (event for event in reversed(self.events) if event.kind in ("failed", "proven"))
        return next(of_state, None)

    def count(self, kind: Kind) -> int:
        """How often events of a kind happened to the GPU."""
        return sum(event.kind == kind for event in self.events)


@dataclass(frozen=True, kw_only=True)
class LastVerification:
    """The newest verification of a cluster.

    + gpus: UUID -> status of its chain
    + level: what was tried
    """

    cluster: str
    at: str
    verdict: str
    gpus: Mapping[str, str] = field(default_factory=dict)
    level: str = "standard"


def last_verification(report: Report) -> LastVerification:
    """What is kept of a verification as a whole."""
    return LastVerification(
        cluster=report.cluster,
        at=report.started,
        verdict=report.verdict,
        gpus={row.uuid: row.status for row in report.gpus if row.uuid},
        level=report.level,
    )


def changes(report: Report, histories: Mapping[str, History]) -> dict[str, list[Event]]:
    """What a verification adds, by GPU UUID.

    + histories: the history of all GPUs, by UUID
    """
    rows = {row.uuid: row for row in report.gpus if row.uuid}
    new_events = {uuid: list(_of_gpu(report, row, histories)) for uuid, row in rows.items()}
    read = _nodes_read(report)
    unidentified = {(row.node, row.pci) for row in report.gpus if not row.uuid}
    for uuid, history in histories.items():
        cluster, node, pci = history.place
        absent = uuid not in rows and (node, pci) not in unidentified
        if absent and not history.is_gone and (cluster, node) in read:
            new_events[uuid] = [_event(report, "gone", history.place, history.name)]
    return {uuid: events for uuid, events in new_events.items() if events}


def _of_gpu(report: Report, row: GpuRow, histories: Mapping[str, History]) -> Iterator[Event]:
    """A GPU that was moved or away has to be proven anew: its slot and cables are part of it.

    A level that computes nothing proves none, and ends no fault.
    """
    history, place = histories.get(row.uuid), (report.cluster, row.node, row.pci)
    if history is None:
        yield _event(report, "first seen", place, row.name, _replaced(report, place, histories))
    elif history.place != place:
        yield _event(
            report, "moved", place, "", f"from {_describe_place(history.place, report.cluster)}"
        )
    elif history.is_gone:
        yield _event(report, "back", place, "")
    stayed = history is not None and history.place == place and not history.is_gone
    before = history.state if history and stayed else None
    proven = row.status == "pass" and report.level != "quick"
    if proven and (before is None or before.kind != "proven"):
        yield _event(report, "proven", place, "")
    if row.status == "fail":
        broken = ", ".join(link for link, status in row.links.items() if status == "fail")
        if before is None or (before.kind, before.detail) != ("failed", broken):
            yield _event(report, "failed", place, "", broken)


def _event(
    report: Report, kind: Kind, place: tuple[str, str, str], name: str, detail: str = ""
) -> Event:
    cluster, node, pci = place
    return Event(
        at=report.started,
        kind=kind,
        cluster=cluster,
        node=node,
        pci=pci,
        detail=detail,
        name=name,
        simulated=bool(report.simulated),
    )


def _replaced(report: Report, place: tuple[str, str, str], histories: Mapping[str, History]) -> str:
    """The GPU that was in the same slot before, in words."""
    present = {row.uuid for row in report.gpus}
    before = [
        uuid
        for uuid, history in histories.items()
        if history.place == place and uuid not in present
    ]
    newest = max(before, key=lambda uuid: histories[uuid].events[-1].at, default="")
    return f"in the place of {newest}" if newest else ""


def _describe_place(place: tuple[str, str, str], cluster: str) -> str:
    """A place in words, with its cluster where that is another one."""
    elsewhere = f" of {place[0]}" if place[0] != cluster else ""
    return f"{place[1]}{elsewhere}, {place[2]}"


def _nodes_read(report: Report) -> set[tuple[str, str]]:
    """Cluster and node of those whose GPUs could be listed: only of these a GPU can be missed."""
    rows = {row.node for row in report.gpus if row.pci}
    listed_nodes = {
        item.node
        for item in report.findings
        if item.link == "pci" and item.status in ("pass", "fail")
    }
    return {(report.cluster, node) for node in rows | listed_nodes if node}


def to_json(event: Event) -> dict[str, Any]:
    """A line of a GPU's file, without what is empty."""
    values = {
        "at": event.at,
        "event": event.kind,
        "cluster": event.cluster,
        "node": event.node,
        "pci": event.pci,
        "detail": event.detail,
        "name": event.name,
        "simulated": event.simulated,
    }
    return {key: value for key, value in values.items() if value}


def cells(event: Event) -> tuple[str, ...]:
    """An event as a row of a table."""
    return event.at, event.kind, f"{event.cluster}/{event.node}", event.pci, event.detail


def from_json(line: Mapping[str, Any]) -> Event:
    """The inverse of `to_json`. Raises KeyError or TypeError for anything else."""
    values = dict(line)
    return Event(kind=values.pop("event"), **values)


def summary(history: History, last: Mapping[str, LastVerification]) -> tuple[str, ...]:
    """A GPU as a row of a table: UUID, name, where it is, state, since when, faults, moves.

    + last: the newest verification of each cluster, by its name
    """
    cluster, node, pci = history.place
    newest = last.get(cluster)
    state = history.state
    word = "gone" if history.is_gone else state.kind if state else "not proven"
    since = history.events[-1].at if history.is_gone else state.at if state else ""
    last_seen = newest.at if newest and history.uuid in newest.gpus else history.events[-1].at
    return (
        history.uuid,
        history.name,
        f"{cluster}/{node}",
        pci,
        word,
        since[:10],
        last_seen[:10],
        str(history.count("failed")),
        str(history.count("moved")),
    )


COLUMNS = ("GPU", "model", "node", "PCI", "state", "since", "seen", "faults", "moves")
