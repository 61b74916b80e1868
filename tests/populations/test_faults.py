"""One fault of each family, on every kind of GPU that can show it: the right verdict and alert."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config.settings.base import seconds
from gpuboot.rules import all_alerts
from tests.populations.chain import clock, judged, told
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
    pytest.param(fault, one, id=f"{one}: {fault}")
    for fault in (*FAULTS, *WATCH_FAULTS)
    for one in KINDS
    if fault.expressible(one)
]
__all__ = ["clock"]


@pytest.mark.parametrize(("fault", "population"), CASES)
def test_the_verdict(fault: Fault, population: Population) -> None:
    settings: dict[str, Any] = dict(fault.cluster)
    if fault.offered:
        settings["offered"] = fault.offered(population)
    page = fault.page(Page(population))
    cluster = Cluster(of=population, page=page, fails=fault.logs(population), **settings)
    findings = judged(fault.on(population), cluster)
    failed = [found for found in findings if found.status == "fail"]
    assert {found.link for found in failed} == fault.failing(population), told(findings)
    hit = {card.uuid for card in population.cards if fault.everywhere or card.index == 0}
    hit |= {one.uuid for card, one in population.instances if card.uuid in hit}
    if not (fault.cluster or fault.offered):
        assert {found.gpu_uuid for found in failed} <= hit, told(findings)


@pytest.fixture(
    scope="module", params=[fault for fault in (*FAULTS, *WATCH_FAULTS) if fault.shown], ids=str
)
def shown(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Fault, dict[str, dict[str, float]]]:
    """A fault, and when which alerts fired by the node's name, with a node of each kind."""
    fault: Fault = request.param
    courses = []
    for one in filter(fault.expressible, (*KINDS, SLICED)):
        given: dict[str, Any] = dict(fault.course)
        if fault.offered:
            given["offered"] = fault.offered(one.small())
        given |= {"changed": fault.page, "rising": fault.rising}
        courses.append(Course(one.small(), since=SINCE, **given))
    folder = tmp_path_factory.mktemp("fault")
    return fault, first_fired(folder, courses, Time(minutes=28, step=60))


@pytest.mark.parametrize("population", [*KINDS, SLICED], ids=str)
def test_the_alerts_come_within_their_time(
    population: Population, shown: tuple[Fault, dict[str, dict[str, float]]]
) -> None:
    fault, alerts = shown
    if fault.expressible(population):
        found = alerts.get(population.node, {})
        assert found.keys() == fault.firing(population)
        late = {
            name: minute
            for name, minute in found.items()
            if minute > SINCE + HOLDS[name] + WINDOWS.get(name, WINDOW)
        }
        assert not late, "minutes, of which the fault began at 3"
