"""The product's own proof of a population, in a time that passes by sleeping only."""

from __future__ import annotations

from typing import Any, cast

from gpuboot.cluster.api import Cluster as RealCluster
from gpuboot.config.settings import parse_settings
from gpuboot.verify import runner
from gpuboot.verify.findings import Finding
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine
from tests.unit.test_runner import clock

__all__ = ["clock", "format_findings", "verify_machine"]

# Short periods: what is waited for costs the test a look a second.
SETTINGS: dict[str, Any] = {
    "monitoring": {"grafana": False},
    "verify": {"timeout_s": 10},
    "exporter": {"scrape_interval": "1s"},
}


def verify_machine(machine: Machine, cluster: Cluster, **settings: Any) -> list[Finding]:
    """What `gpuboot verify` finds. + settings: that differ"""
    site_settings = parse_settings({**SETTINGS, **settings})
    host = machine.host()
    names, api = [host.node], cast(RealCluster, cluster)
    proof = runner.verify(api, names, lambda: [host], site_settings, lambda line: None)
    return list(proof.findings)


def format_findings(findings: list[Finding]) -> str:
    return "\n".join(
        f"{f.status} {f.link} {f.gpu_uuid}: {f.detail}" for f in findings if f.status != "pass"
    )
