"""Hooks of Helm releases: Jobs that Helm waits for, and what keeps them from ending."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.kubernetes import stuck
from gpuboot.kubernetes.cluster_state import ClusterState
from gpuboot.kubernetes.readiness import Progress

# how kubectl lists Jobs for `parse`: a line each
FORMAT = (
    'jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.metadata.annotations.helm\\.sh/hook}'
    '{"\\t"}{.status.succeeded}{"\\n"}{end}'
)


def parse(lines: Iterable[str]) -> list[str]:
    """The names of the hooks that have not succeeded, of the Jobs that kubectl lists."""
    rows = [line.split("\t") for line in lines]
    return [row[0] for row in rows if len(row) == 3 and row[1] and not row[2]]


def progress(jobs: Iterable[str], namespace: str, state: ClusterState) -> Progress:
    """How far hooks are. + jobs: their names; state: with its pod issues"""
    reasons = [
        reason
        for job in jobs
        for issue in state.pod_issues
        if issue.namespace == namespace and (issue.pod == job or issue.pod.startswith(f"{job}-"))
        for reason in (stuck.of_job(issue, state),)
        if reason
    ]
    waits = f"Helm waits for its hooks: {', '.join(jobs) or 'none is there yet'}"
    return Progress(False, "; ".join([waits, *map(str, reasons)]), stuck=tuple(reasons))
