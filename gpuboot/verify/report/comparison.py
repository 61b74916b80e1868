"""What changed between two verifications of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gpuboot.verify.findings import GRAVITY, Finding
from gpuboot.verify.report.model import Report, ReportError, load

_LOOKED_THROUGH = 200  # newest folders, for a verification of the same cluster


def previous(folder: Path) -> tuple[Path, Report] | None:
    """The verification before the one in this folder; None: there is none.

    It is of the same cluster, level and nodes: others tried something else.

    Raises `ReportError` when this folder has no report.
    """
    folder = folder.resolve()
    now = load(folder / "verify.json")
    earlier = (path for path in folder.parent.glob("2*") if path.name < folder.name)
    for path in islice(sorted(earlier, reverse=True), _LOOKED_THROUGH):
        try:
            before = load(path / "verify.json")
        except ReportError:
            continue  # a run without a proof, or of another schema
        if _scope(before) == _scope(now):
            return path, before
    return None


def _scope(report: Report) -> tuple[str, str, set[str]]:
    return report.cluster, report.level, set(report.nodes)


def differences(before: Report, now: Report) -> list[str]:
    """What changed, a line each: the verdict, GPUs, versions, and what fails or passes now."""
    return [*_verdict(before, now), *_gpus(before, now), *_versions(before, now),
            *_findings(before, now)]  # fmt: skip


def _verdict(before: Report, now: Report) -> Iterator[str]:
    if before.verdict != now.verdict:
        yield f"verdict: {before.verdict} -> {now.verdict}"


def _gpus(before: Report, now: Report) -> Iterator[str]:
    old = {row.uuid: row for row in before.gpus if row.uuid}
    new = {row.uuid: row for row in now.gpus if row.uuid}
    for uuid, row in old.items():
        if uuid not in new:
            yield f"{uuid} of {row.node} ({row.pci}) is not there any more"
    for uuid, row in new.items():
        was = old.get(uuid)
        if was is None:
            yield f"{uuid} is new, on {row.node} ({row.pci})"
        elif (was.node, was.pci) != (row.node, row.pci):
            yield f"{uuid} moved from {was.node} ({was.pci}) to {row.node} ({row.pci})"
        if was and was.status == "pass" and row.status in ("not_covered", "unknown"):
            unseen = [link for link, state in row.links.items() if state != "pass"]
            yield f"{uuid} of {row.node} is not covered any more: {', '.join(unseen)}"


def _versions(before: Report, now: Report) -> Iterator[str]:
    for name in sorted({*before.versions, *now.versions}):
        old, new = before.versions.get(name), now.versions.get(name)
        if old != new:
            yield f"{name}: {old or 'none'} -> {new or 'none'}"


def _findings(before: Report, now: Report) -> Iterator[str]:
    """Checks whose status is another one; a check that only one of them made is not compared."""
    old = {_key(item): item for item in before.findings}
    for item in sorted(now.findings, key=lambda item: GRAVITY.index(item.status)):
        was = old.get(_key(item))
        if was is None or was.status == item.status:
            continue
        subject = " ".join(part for part in (item.node, item.gpu_uuid) if part) or "the cluster"
        yield f"{subject}: {item.check}: {was.status} -> {item.status}: {item.detail}"


def _key(item: Finding) -> tuple[str, str, str, str | None]:
    return item.check, item.link, item.node, item.gpu_uuid
