"""What a report holds. Its JSON form is `verify.json`; docs/reports.md documents the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpuboot.config.exit_codes import exit_code
from gpuboot.config.settings.gpu import Level
from gpuboot.verify.findings import (
    CLUSTER_LINKS,
    GRAVITY,
    LINKS,
    Finding,
    Status,
    Verdict,
    from_json,
    verdict,
    worst,
)
from gpuboot.verify.firing_alerts import FiringAlert

SCHEMA = 1
# variable that names the file for the report folder's path, for the command that started pyinfra
POINTER = "GPUBOOT_REPORT_POINTER"
# for people, with the texts in which something says that it is simulated
SIMULATED = "SIMULATED: no real GPU is behind this. It says so itself: {}"
_DERIVED = {"status", "alerts", "instances"}  # of a row in verify.json
NOT_COVERED: Status = "not_covered"


class ReportError(ValueError):
    """A verify.json that cannot be read; the text says why."""


@dataclass(frozen=True, kw_only=True)
class _Chain:
    """The links of one chain.

    + demanded: the links that level and settings demand of it
    + links: link -> its worst status; a demanded link that nobody looked at is `not_covered`
    """

    demanded: tuple[str, ...]
    links: Mapping[str, Status]

    def __post_init__(self) -> None:
        missing = {link: NOT_COVERED for link in self.demanded if link not in self.links}
        links = {**self.links, **missing}
        ordered = {link: links[link] for link in LINKS if link in links}
        object.__setattr__(self, "links", ordered)

    @property
    def status(self) -> Status:
        """`pass` only if links are demanded, and every one passed."""
        states = set(self.links.values()) if self.demanded else {NOT_COVERED}
        return next(item for item in GRAVITY if item in states)


@dataclass(frozen=True, kw_only=True)
class InstanceRow(_Chain):
    """A MIG device and the state of each link of its chain; the lowest are its GPU's.

    + gi, ci: ids of its GPU instance and compute instance; None when nvidia-smi did not tell
    """

    uuid: str
    profile: str
    gi: int | None
    ci: int | None


@dataclass(frozen=True, kw_only=True)
class GpuRow(_Chain):
    """A GPU and the state of each link of its chain.

    Its links are the worst of its own and of its MIG devices'. One that the inventory promises and
    nobody saw has neither UUID nor PCI address.

    + instances: its MIG devices
    """

    node: str
    uuid: str
    pci: str
    name: str
    memory_mib: int | None
    instances: tuple[InstanceRow, ...] = ()

    @property
    def title(self) -> str:
        """What it is called in a table: its UUID, or where it is as far as that is known."""
        return self.uuid or (f"? at {self.pci}" if self.pci else "? not seen")

    def __post_init__(self) -> None:
        links = dict(self.links)
        for link, status in ((*pair,) for item in self.instances for pair in item.links.items()):
            links[link] = min(status, links.get(link, status), key=GRAVITY.index)
        object.__setattr__(self, "links", links)
        super().__post_init__()

    def to_json(self) -> dict[str, Any]:
        instances = [{**asdict(item), "status": item.status} for item in self.instances]
        return {**asdict(self), "instances": instances, "status": self.status}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of a verification.

    + started: UTC, ISO 8601
    + seconds: duration
    + simulated: texts in which a driver or product says that it is simulated
    + versions, durations: by name; durations in seconds
    + alerts: what fires, of GPUs, nodes and the cluster; None: nobody could say
    + runbooks: where docs/runbooks is published (`alerts.runbooks`), or ""
    + level: what was tried
    + nodes: those it was limited to; none: it is about all of the inventory
    """

    cluster: str
    started: str
    seconds: float
    findings: tuple[Finding, ...]
    gpus: tuple[GpuRow, ...]
    simulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    alerts: tuple[FiringAlert, ...] | None = None
    runbooks: str = ""
    level: Level = "standard"
    nodes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict; that all links passed is no proof where nothing was computed."""
        if verdict(self.findings) == "failed":
            return "failed"
        states = {row.status for row in self.gpus} | {item.status for item in self.findings}
        if not self.gpus or states != {"pass"}:
            return "not_covered"
        return "answering" if self.level == "quick" else "proven"

    @property
    def exit(self) -> int:
        return exit_code(self.verdict)

    @property
    def cluster_links(self) -> dict[str, Status]:
        """State of the links that belong to no GPU."""
        return {
            link: worst(findings)
            for link in CLUSTER_LINKS
            if (findings := [item for item in self.findings if item.link == link])
        }

    @property
    def totals(self) -> dict[str, int]:
        """GPUs by the state of their chain; without a computation none is proven."""
        states = [row.status for row in self.gpus]
        computed = self.level != "quick"
        return {
            "gpus": len(states),
            "proven": states.count("pass") if computed else 0,
            "answering": 0 if computed else states.count("pass"),
            "failed": states.count("fail"),
            "not_covered": states.count("not_covered") + states.count("unknown"),
        }

    def firing(self, node: str, uuid: str = "") -> list[FiringAlert]:
        """The alerts of one GPU; without a UUID those of the node itself, node "": of all else."""
        node_by_uuid = {row.uuid: row.node for row in self.gpus if row.uuid}
        nodes = {row.node for row in self.gpus}

        def place(item: FiringAlert) -> tuple[str, str]:
            if item.gpu_uuid in node_by_uuid:
                return node_by_uuid[item.gpu_uuid], item.gpu_uuid
            return (item.node if item.node in nodes else ""), ""

        return [item for item in self.alerts or () if place(item) == (node, uuid)]

    @property
    def parents(self) -> dict[str, str]:
        """MIG device -> its GPU, by UUID."""
        return {item.uuid: row.uuid for row in self.gpus for item in row.instances}

    def with_status(self, status: Status) -> list[Finding]:
        """All findings of one status, the lowest links first: they are the causes of others."""
        order = list(LINKS)
        findings = [item for item in self.findings if item.status == status]
        return sorted(findings, key=lambda item: order.index(item.link))

    def to_json(self) -> dict[str, Any]:
        """The content of verify.json."""
        return {
            "schema": SCHEMA,
            "gpuboot": version("gpuboot"),
            "cluster": self.cluster,
            "started": self.started,
            "seconds": round(self.seconds, 3),
            "level": self.level,
            "nodes": list(self.nodes),
            "verdict": self.verdict,
            "exit": self.exit,
            "totals": self.totals,
            "simulated": list(self.simulated),
            "versions": dict(self.versions),
            "durations": dict(self.durations),
            "links": self.cluster_links,
            "runbooks": self.runbooks,
            "alerts": None if self.alerts is None else [asdict(item) for item in self.alerts],
            "gpus": [
                {
                    **row.to_json(),
                    "alerts": [item.name for item in self.firing(row.node, row.uuid)],
                }
                for row in self.gpus
            ],
            "findings": [item.to_json() for item in self.findings],
        }


def load(path: Path) -> Report:
    """Read a verify.json. Raises `ReportError` for a file of another schema, or none at all."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ReportError(f"{path}: schema {data['schema']}, this gpuboot reads {SCHEMA}")
        return Report(
            cluster=data["cluster"],
            started=data["started"],
            seconds=data["seconds"],
            findings=tuple(from_json(item) for item in data["findings"]),
            gpus=tuple(map(_read_row, data["gpus"])),
            simulated=tuple(data["simulated"]),
            versions=data["versions"],
            durations=data["durations"],
            alerts=None
            if (alerts := data["alerts"]) is None
            else tuple(FiringAlert(**alert) for alert in alerts),
            runbooks=data["runbooks"],
            level=data["level"],
            nodes=tuple(data["nodes"]),
        )
    except FileNotFoundError:
        raise ReportError(f"{path}: there is no such report") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ReportError):
            raise
        raise ReportError(f"{path}: not a report of gpuboot: {error!r}") from None


def _read_row(row: Mapping[str, Any]) -> GpuRow:
    """A row of the file."""
    instances = tuple(InstanceRow(**_chain(item)) for item in row["instances"])
    return GpuRow(**_chain(row), instances=instances)


def _chain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a chain, without what follows from others."""
    plain = {key: value for key, value in row.items() if key not in _DERIVED}
    return {**plain, "demanded": tuple(row["demanded"])}
