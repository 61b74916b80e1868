"""The product's own proof of a population, in a time that passes by sleeping only."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.kubernetes.api import Cluster as RealCluster
from gpuboot.verify import runner, workload
from gpuboot.verify.findings import Finding
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine

# Short periods: what is waited for costs the test a look a second.
SETTINGS: dict[str, Any] = {
    "monitoring": {"grafana": False},
    "verify": {"timeout_s": 10},
    "exporter": {"interval_ms": 1000, "scrape_interval": "5s", "scrape_timeout": "5s"},
}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that passes only by sleeping."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    for module in (runner, workload):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(module.time, "sleep", sleep)


def judged(machine: Machine, cluster: Cluster, **settings: Any) -> list[Finding]:
    """What `gpuboot verify` finds. + settings: that differ"""
    asked = parse_settings({**SETTINGS, **settings})
    host = machine.host()
    proof = runner.verify(cast(RealCluster, cluster), [host], asked, lambda line: None)
    return list(proof.findings)


def told(findings: list[Finding]) -> str:
    return "\n".join(
        f"{f.status} {f.link} {f.gpu_uuid}: {f.detail}" for f in findings if f.status != "pass"
    )
