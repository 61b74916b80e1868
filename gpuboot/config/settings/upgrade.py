"""Settings of upgrades: how many nodes are away at a time, and what becomes of their pods."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuboot.config.settings.base import Model


def _number_or_share(value: int | str) -> int | str:
    if isinstance(value, int) and value < 1:
        raise ValueError("takes 1 or more, or a share such as 10%")
    if isinstance(value, str) and not re.fullmatch(r"(100|[1-9]?\d)%", value):
        raise ValueError("takes a number of nodes, or a share of them such as 10%")
    return value


class Upgrade(Model):
    """Upgrades of nodes that are in use."""

    max_unavailable: Annotated[int | str, AfterValidator(_number_or_share)] = Field(
        1,
        description="Workers that are upgraded at the same time: a number, or a share of them such "
        'as `"10%"`, rounded down, but at least one. Control planes: always one at a time.',
    )
    drain: Literal["minor", "always", "never"] = Field(
        "minor",
        description="For which upgrades of the kubelet the pods of its node are moved to other "
        "nodes before: those to a newer minor release (as Kubernetes asks for), all, or none. "
        "PodDisruptionBudgets are respected. The only node of a cluster is never drained.",
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


def batch_size(max_unavailable: int | str, nodes: int) -> int:
    """How many of these nodes may be away at the same time: at least one."""
    if isinstance(max_unavailable, int):
        return max_unavailable
    return max(nodes * int(max_unavailable.rstrip("%")) // 100, 1)
