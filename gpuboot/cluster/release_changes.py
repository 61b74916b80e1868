"""What changes in a Helm release: its chart, and its values by key."""

from collections.abc import Mapping
from typing import Any

from gpuboot.cluster.helm_releases import Release
from gpuboot.plan.differences import value_changes
from gpuboot.plan.model import Change


def release_changes(
    subject: str, release: Release, chart: str, version: str, values: Mapping[str, Any]
) -> list[Change]:
    """The changes that bring a release to this chart, version and values.

    + subject: of the changes; + found: the release as Helm has it
    """
    new = f"{chart} {version}"
    if not release.status:
        return [Change(subject=subject, new=f"{new} with {_leaf_count(values)} values")]
    old = f"{release.chart} {release.version}"
    is_current = (release.chart, release.version.removeprefix("v")) == (
        chart,
        version.removeprefix("v"),
    )
    changes = [] if is_current else [Change(subject=subject, field="chart", old=old, new=new)]
    if release.status != "deployed":
        changes.append(Change(subject=subject, field="status", old=release.status, new="deployed"))
    return [*changes, *value_changes(subject, dict(release.config), dict(values))]


def _leaf_count(value: Any) -> int:
    """How many values a tree of maps has; a list is one."""
    return sum(map(_leaf_count, value.values())) if isinstance(value, Mapping) else 1
