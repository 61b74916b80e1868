"""Hooks of Helm releases: Jobs that Helm waits for, and what keeps them from ending."""

from collections.abc import Iterable

from gpuboot.cluster import stuck
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.objects import seconds
from gpuboot.cluster.readiness import Progress

# how kubectl lists Jobs for `parse`: a line each
FORMAT = (
    'jsonpath={range .items[*]}{.metadata.name}{"\\t"}{.metadata.annotations.helm\\.sh/hook}'
    '{"\\t"}{.status.succeeded}{"\\t"}{.metadata.creationTimestamp}{"\\n"}{end}'
)


def parse(lines: Iterable[str], since: float) -> list[str]:
    """The names of the hooks that have not succeeded, of the Jobs that kubectl lists.

    + since: when Helm began, in seconds since 1970: those of before are of other releases
    """
    names = []
    for line in lines:
        name, hook, succeeded, created = line.split("\t")
        if hook and not succeeded and seconds(created) >= since:
            names.append(name)
    return names


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
