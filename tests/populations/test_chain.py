"""Every kind of GPU, from the bus to Prometheus: proven when it is well."""

from __future__ import annotations

import pytest

from gpuboot.checks.model import verdict
from tests.populations.chain import clock, judged, told
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine
from tests.populations.model import Population
from tests.populations.page import Page
from tests.populations.table import POPULATIONS

__all__ = ["clock"]


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_a_healthy_machine_is_proven(population: Population) -> None:
    findings = judged(Machine(population), Cluster(of=population, page=Page(population)))
    assert verdict(findings) == "proven", told(findings)
