"""Settings of upgrades: how many nodes are away at a time, and what becomes of their pods."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings.base import Model

Share = int | str  # of nodes: how many, or a part such as 10%
OTHER_WORKERS = "*"


def _share_problem(value: Share) -> str:
    """What is wrong with a value; "" for nothing."""
    if isinstance(value, int):
        return "" if value >= 1 else "takes 1 or more, or a share such as 10%"
    good = re.fullmatch(r"(100|[1-9]?\d)%", value)
    return "" if good else "takes a number of nodes, or a share of them such as 10%"


def _limits(value: Share | dict[str, Share]) -> Share | dict[str, Share]:
    if not isinstance(value, dict):
        if problem := _share_problem(value):
            raise ValueError(problem)
        return value
    problem = "; ".join(
        f"{group!r} {cause} (given: {share!r})"
        for group, share in value.items()
        if (cause := _share_problem(share))
    )
    if problem or not value:
        raise ValueError(problem or "takes at least one group of the inventory")
    return value


class Upgrade(Model):
    """Upgrades of nodes that are in use."""

    max_unavailable: Annotated[Share | dict[str, Share], AfterValidator(_limits)] = Field(
        1,
        description="Workers that are upgraded at the same time: a number, or a share of them such "
        'as `"10%"`, rounded down, but at least one. Or each group of the inventory\'s own, such '
        'as `{"inference": "25%", "*": 1}`: a node belongs to the first of these groups that it is '
        'in, or to the rest, `"*"` (1 by default); groups follow one after the other. Control '
        "planes: always one at a time.",
    )
    drain: Literal["when-needed", "always", "never"] = Field(
        "when-needed",
        description="For which upgrades the pods of a node are moved to other nodes before: those "
        "that end pods (another NVIDIA driver) and those for which Kubernetes asks it (a newer "
        "minor release of the kubelet), all, or none. PodDisruptionBudgets are respected. The only "
        "node that takes pods is never drained.",
    )
    drain_timeout_s: int = Field(
        600, ge=10, description="How long all pods of a node may take to leave it."
    )
    drain_empty_dirs: bool = Field(
        True, description="Pods may be moved whose emptyDir holds data, which ends with them."
    )
    drain_unmanaged: bool = Field(
        False, description="Pods may be ended that no controller makes again."
    )


@dataclass(frozen=True)
class Batch:
    """Workers that are upgraded so many at a time. + title: what to call them"""

    title: str
    nodes: tuple[Node, ...]
    max_parallel: int


def batches(
    max_unavailable: Share | Mapping[str, Share], nodes: Sequence[Node]
) -> tuple[Batch, ...]:
    """Workers by the groups that `max_unavailable` names, those of no such group last."""
    shares = (
        max_unavailable
        if isinstance(max_unavailable, Mapping)
        else {OTHER_WORKERS: max_unavailable}
    )
    named_groups = [group for group in shares if group != OTHER_WORKERS]
    nodes_by_group: dict[str, list[Node]] = {group: [] for group in [*named_groups, OTHER_WORKERS]}
    for node in nodes:
        nodes_by_group[
            next((group for group in named_groups if group in node.groups), OTHER_WORKERS)
        ].append(node)
    titles = {group: f"the workers of {group}" for group in named_groups}
    titles[OTHER_WORKERS] = "the other workers" if named_groups else "the workers"
    return tuple(
        Batch(titles[group], tuple(items), batch_size(shares.get(group, 1), len(items)))
        for group, items in nodes_by_group.items()
        if items
    )


def batch_size(max_unavailable: Share, nodes: int) -> int:
    """How many of these nodes may be away at the same time: at least one."""
    if isinstance(max_unavailable, int):
        return max_unavailable
    return max(nodes * int(max_unavailable.rstrip("%")) // 100, 1)


def unknown_groups(
    max_unavailable: Share | Mapping[str, Share], groups: Iterable[str]
) -> list[Problem]:
    """Groups that the settings name and the inventory does not have.

    + groups: of the inventory
    """
    known_groups = set(groups)
    named_groups = max_unavailable if isinstance(max_unavailable, Mapping) else {}
    return [
        Problem(
            "",
            f"upgrade.max_unavailable names {group!r}, which is no group of the inventory",
            f"name one of {', '.join(sorted(known_groups))}, or * for the rest",
        )
        for group in named_groups
        if group != OTHER_WORKERS and group not in known_groups
    ]
