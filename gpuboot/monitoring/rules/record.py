"""What a recording rule is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.monitoring.rules.requirements import Requirement


@dataclass(frozen=True)
class Record:
    """A recording rule.

    + name: the series it makes
    + expr: PromQL
    + labels: added to each series
    + help: what its value means, with its unit
    + requires: what it has no value without
    """

    name: str
    expr: str
    help: str
    labels: Mapping[str, str] = field(default_factory=dict)
    requires: Requirement = Requirement.NONE
