"""Drift: where hosts and cluster differ from the settings, for people and Prometheus.

Read from a plan as `gpuboot plan` prints it: what a run would change is what has drifted, and what
somebody has decided otherwise, which a run leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuboot.cluster import terminating
from gpuboot.config import support
from gpuboot.config.support import End
from gpuboot.plan.model import Change, KeptItem
from gpuboot.plan.terminal import change_lines, kept_lines

REMEDY = "`pyinfra INVENTORY deploys/site.py` puts it right; --dry shows what that costs"
DECISION = "a run leaves this, since somebody has decided it; the line says how to undo that"
UNKNOWN = "this could not be compared, for the reason in its line; run `gpuboot drift` again then"
TERMINATING = (
    "a run cannot put this right as long as a namespace is being deleted; the line says who must "
    "act, and then `pyinfra INVENTORY deploys/site.py` makes what was in it again"
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one operation would change on one host, or leaves there as somebody has set it.

    + host: inventory name
    + lines: each change, old and new; () where the operation does not tell
    + decision: whether a run leaves it
    + is_blocked: a namespace that is being deleted is in a run's way
    + is_unknown: nothing else than what nobody could read
    """

    host: str
    phase: str
    operation: str
    lines: tuple[str, ...]
    decision: bool = False
    is_blocked: bool = False
    is_unknown: bool = False

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        if self.is_unknown:
            return UNKNOWN
        if self.is_blocked:
            return TERMINATING
        return DECISION if self.decision else REMEDY


@dataclass(frozen=True, kw_only=True)
class Drift:
    """All differences of a site.

    + hosts: inventory names of all that were compared
    + ends: when support of the locked versions and the keys of package repositories end
    """

    cluster: str
    hosts: Sequence[str]
    differences: Sequence[Difference]
    ends: Sequence[End] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether nothing differs in what was compared, and something could not be."""
        return bool(self.differences) and all(item.is_unknown for item in self.differences)

    def of(self, host: str) -> list[Difference]:
        """The differences of one host."""
        return [item for item in self.differences if item.host == host]


def from_plan(plan: Mapping[str, Any]) -> Drift:
    """What has drifted, by a plan's JSON (docs/reports.md has its keys)."""
    differences = [
        Difference(
            host=entry["host"],
            phase=step["phase"],
            operation=step["operation"],
            lines=tuple(line for change in entry["changes"] for line in _lines(change)),
        )
        for step in plan["steps"]
        for entry in step["hosts"]
    ]
    differences += [
        Difference(
            host=entry["host"],
            phase=step["phase"],
            operation=step["operation"],
            lines=tuple(line for change in entry["kept"] for line in _kept_lines(change)),
            decision=True,
            is_unknown=not any(change.get("is_known", True) for change in entry["kept"]),
        )
        for step in plan["decisions"]
        for entry in step["hosts"]
    ]
    if any(item.operation == terminating.OPERATION for item in differences):
        differences = [
            replace(item, is_blocked=not item.decision or item.operation == terminating.OPERATION)
            for item in differences
        ]
    ends = [support.end_of_json(item) for item in plan["ends"]]
    return Drift(cluster=plan["cluster"], hosts=plan["hosts"], differences=differences, ends=ends)


def _lines(change: Mapping[str, Any]) -> list[str]:
    diff = tuple(change.get("diff", ()))
    return list(change_lines(Change(**{**change, "diff": diff}), full=True))


def _kept_lines(decision: Mapping[str, Any]) -> list[str]:
    diff = tuple(decision.get("diff", ()))
    return list(kept_lines(KeptItem(**{**decision, "diff": diff}), full=True))


def text(drift: Drift) -> str:
    """The drift for people and for a timer's mail: by host, each operation with its changes."""
    if not drift.differences:
        some = f"all {len(drift.hosts)} hosts are" if len(drift.hosts) > 1 else "the host is"
        return f"no drift: {some} as the settings say\n"
    lines = []
    for host in drift.hosts:
        for item in drift.of(host):
            lines.append(f"{host}: {item.phase} | {item.operation}")
            lines += [f"    {line}" for line in item.lines]
    remedies = dict.fromkeys(item.remedy for item in drift.differences)
    return "\n".join([*lines, *(f"remedy: {remedy}" for remedy in remedies)]) + "\n"


def metrics(drift: Drift, now: float) -> str:
    """The drift as text for node-exporter's textfile collector. + now: seconds since 1970

    `gpuboot_drift_operations` is there for each host, with 0 where nothing differs. A comparison
    that failed writes nothing, so its time tells whether the figures are of today.
    """
    lines = [
        "# HELP gpuboot_drift_operations Operations that change the host, leave a decision, "
        "or could not compare.",
        "# TYPE gpuboot_drift_operations gauge",
        *(
            f"gpuboot_drift_operations{_labels(drift, host)} {len(drift.of(host))}"
            for host in drift.hosts
        ),
        "# HELP gpuboot_drift_compared_timestamp_seconds When hosts and settings were compared.",
        "# TYPE gpuboot_drift_compared_timestamp_seconds gauge",
        f"gpuboot_drift_compared_timestamp_seconds{_labels(drift)} {now:.0f}",
        *support.metrics(drift.ends, drift.cluster, "drift"),
    ]
    return "\n".join(lines) + "\n"


def _labels(drift: Drift, host: str = "") -> str:
    labels = {"cluster": drift.cluster, **({"host": host} if host else {})}
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
