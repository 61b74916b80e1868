"""One fault of each family, on every kind of GPU that can show it: the right verdict and alert."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config.settings.base import seconds
from gpuboot.monitoring.rules import all_alerts
from tests.populations.chain import clock, format_findings, verify_machine
from tests.populations.cluster import Cluster
from tests.populations.course import SETTINGS, Course, Time, first_fired
from tests.populations.faults import FAULTS, Fault
from tests.populations.model import Population
from tests.populations.opposites import RELATED
from tests.populations.page import Page
from tests.populations.table import POPULATIONS, SLICED
from tests.populations.watch_faults import WATCH_FAULTS

KINDS = (*POPULATIONS.values(), *RELATED)
SINCE = 3  # minutes: when the fault begins
# what an alert's window and two evaluations take beside the time that it waits by itself
WINDOW, WINDOWS = 6, {"GPUMetricsFrozen": 16}
HOLDS = {
    alert.name: seconds(alert.hold_for) / 60
    for group in all_alerts(SETTINGS).values()
    for alert in group
}
CASES = [
    pytest.param(fault, entry, id=f"{entry}: {fault}")
    for fault in (*FAULTS, *WATCH_FAULTS)
    for entry in KINDS
    if fault.expressible(entry)
]
__all__ = ["clock"]


@pytest.mark.parametrize(("fault", "population"), CASES)
def test_the_verdict(fault: Fault, population: Population) -> None:
    settings: dict[str, Any] = dict(fault.cluster)
    if fault.advertised:
        settings["advertised"] = fault.advertised(population)
    page = fault.page(Page(population))
    cluster = Cluster(of=population, page=page, fails=fault.logs(population), **settings)
    findings = verify_machine(fault.on(population), cluster)
    failed = [finding for finding in findings if finding.status == "fail"]
    assert {finding.link for finding in failed} == fault.failing(population), format_findings(
        findings
    )
    hit = {card.uuid for card in population.cards if fault.everywhere or card.index == 0}
    hit |= {instance.uuid for card, instance in population.instances if card.uuid in hit}
    if not (fault.cluster or fault.advertised):
        assert {finding.gpu_uuid for finding in failed} <= hit, format_findings(findings)


@pytest.fixture(
    scope="module", params=[fault for fault in (*FAULTS, *WATCH_FAULTS) if fault.visible], ids=str
)
def fault_alerts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Fault, dict[str, dict[str, float]]]:
    """A fault, and when which alerts fired by the node's name, with a node of each kind."""
    fault: Fault = request.param
    courses = []
    for population in filter(fault.expressible, (*KINDS, SLICED)):
        options: dict[str, Any] = dict(fault.course)
        if fault.advertised:
            options["advertised"] = fault.advertised(population.small())
        options |= {"changed": fault.page, "rising": fault.rising}
        courses.append(Course(population.small(), since=SINCE, **options))
    folder = tmp_path_factory.mktemp("fault")
    return fault, first_fired(folder, courses, Time(minutes=28, step=60))


@pytest.mark.parametrize("population", [*KINDS, SLICED], ids=str)
def test_the_alerts_come_within_their_time(
    population: Population, fault_alerts: tuple[Fault, dict[str, dict[str, float]]]
) -> None:
    fault, alerts = fault_alerts
    if fault.expressible(population):
        fired = alerts.get(population.node, {})
        assert fired.keys() == fault.firing(population)
        late = {
            name: minute
            for name, minute in fired.items()
            if minute > SINCE + HOLDS[name] + WINDOWS.get(name, WINDOW)
        }
        assert not late, "minutes, of which the fault began at 3"
