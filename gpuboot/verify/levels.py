"""How much a verification tries, and on which nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.settings.alerting import Severity
from gpuboot.config.settings.gpu import Level
from gpuboot.verify.findings import DEEP_LINKS, GPU_LINKS, Finding

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
LEVELS: tuple[Level, ...] = get_args(Level)  # each tries more than the one before
_TAKES_PODS = frozenset({"workload", "attribution", "services", "isolation"})


def left_out(level: Level) -> frozenset[str]:
    """The links of the chain that a level does not have."""
    without = frozenset[str]() if level == "deep" else frozenset(DEEP_LINKS)
    return without | _TAKES_PODS if level == "quick" else without


def within(findings: Iterable[Finding], level: Level) -> list[Finding]:
    """The findings without those of links that the level does not have."""
    without = left_out(level)
    return [item for item in findings if item.link not in without]


def gpu_links(settings: Settings) -> list[str]:
    """The links that settings and level demand of each GPU of a cluster, in the chain's order."""
    without = left_out(settings.verify.level)
    if not settings.monitoring.enabled:
        without |= {"prometheus", "attribution"}
    return [link for link in (*GPU_LINKS, *DEEP_LINKS) if link not in without]


def with_level(settings: Settings, level: Level) -> Settings:
    """The settings with another level."""
    changed = settings.verify.model_copy(update={"level": level})
    return settings.model_copy(update={"verify": changed})


@dataclass(frozen=True)
class Scope:
    """What somebody asked of a verification.

    + level: None: that of the settings
    + nodes: names, of the cluster or the inventory; none: all
    + resume: go on with deep tests that an earlier verification began
    + test_alert: severity of a test alert to send; None: none
    """

    level: Level | None = None
    nodes: tuple[str, ...] = ()
    resume: bool = False
    test_alert: Severity | None = None

    def selected(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with GPUs that it is about."""
        return [
            node
            for node in nodes
            if node.gpus and (not self.nodes or {node.name, node.host} & {*self.nodes})
        ]

    def names(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """The names in the cluster of those that it is limited to; none: it is about all."""
        return tuple(node.name for node in self.selected(nodes)) if self.nodes else ()

    def problems(self, nodes: Sequence[Node]) -> list[Problem]:
        """Names of no node with GPUs."""
        gpu_nodes = [node for node in nodes if node.gpus]
        known_names = {name for node in gpu_nodes for name in (node.name, node.host)}
        names = ", ".join(sorted(node.name for node in gpu_nodes)) or "none"
        return [
            Problem("", f"{name} is no node with GPUs of this inventory", f"they are: {names}")
            for name in self.nodes
            if name not in known_names
        ]


ALL = Scope()


def scope(level: str, nodes: str, resume: str = "", test_alert: str = "") -> Scope:
    """What the words of a command line ask for. Raises ValueError for another level or severity.

    + level: "": that of the settings
    + nodes: names with commas between; "": all
    + resume: any word: go on with deep tests
    + test_alert: severity of a test alert; "": none is sent
    """
    matched_level = next((item for item in LEVELS if item == level), None)
    if level and matched_level is None:
        raise ValueError(f"there is no level {level}: it is one of {', '.join(LEVELS)}")
    names = tuple(dict.fromkeys(name.strip() for name in nodes.split(",") if name.strip()))
    severity = next((item for item in SEVERITIES if item == test_alert), None)
    if test_alert and severity is None:
        raise ValueError(f"no severity {test_alert}: it is one of {', '.join(SEVERITIES)}")
    return Scope(matched_level, names, bool(resume), severity)
