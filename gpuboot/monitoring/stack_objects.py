"""What gpuboot adds to the monitoring stack's charts: as the settings want it, and as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.cluster.objects import Claim


@dataclass(frozen=True)
class ObservedObjects:
    """What the cluster has of the objects that gpuboot adds to the charts' own.

    + objects: kind, namespace and name of each object of ours -> digest of what was applied
    + enforcement: what becomes of its NetworkPolicies; "" where it was not read
    """

    objects: Mapping[tuple[str, str, str], str]
    claims: tuple[Claim, ...] = ()
    enforcement: str = ""


@dataclass(frozen=True, kw_only=True)
class ExpectedObjects:
    """What it should have, as the settings say.

    + groups: rule group -> names of its rules
    + rules_digest: the rules' digest, which `gpuboot.monitoring.rules.RULES_INFO_METRIC` carries
    + alertmanager: its configuration, as a map
    + claims: beginning of a claim's name -> size
    + state_metrics, node_exporter: kube-state-metrics, node-exporter is part of it
    """

    objects: Mapping[tuple[str, str, str], str]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alertmanager: Mapping[str, Any] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    state_metrics: bool = True
    node_exporter: bool = True
    rules_digest: str = ""
