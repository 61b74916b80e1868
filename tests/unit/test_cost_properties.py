"""Whatever happens in a cluster, no GPU hour is lost, counted twice, or called free unseen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuboot.usage.cost.cost_lines import Sums, grouped, total
from gpuboot.usage.cost.cost_report import Report, report
from gpuboot.usage.cost.period import Period, time_zone
from gpuboot.usage.cost.prices import Prices
from gpuboot.usage.series import History
from tests.unit.made_cluster import (
    A100,
    GPU_RESOURCE,
    H100,
    SHARED,
    MadeCluster,
    MadeNode,
    MadePod,
)

PRICES = Prices("EUR", {H100: 2.5, "*": 1.0}, 0.25, 1.4)
HOURS = 3
# MIG layouts of one H100 80GB: profile -> instances and share; stranded is what is left of a card
LAYOUTS = (
    {"1g.10gb": (7, 1 / 7)},
    {"2g.20gb": (3, 2 / 7)},
    {"3g.40gb": (2, 1 / 2)},
    {"1g.20gb": (4, 1 / 4)},
    # slices of compute and memory add up to 15/14 of a card, so each counts 14/15
    {"1g.10gb": (2, 2 / 15), "2g.20gb": (1, 4 / 15), "3g.40gb": (1, 7 / 15)},
)
fast_settings = settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip


def make_report(history: History) -> Report:
    return report(history, Period(history.window, UTC), PRICES)


spans = st.tuples(st.integers(0, HOURS * 60), st.integers(0, 90)).map(
    lambda pair: range(pair[0], min(HOURS * 60, sum(pair)))
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> MadeNode:
    kind = draw(st.sampled_from(["whole", "slices", "mig", "single"]))
    cards = draw(st.integers(1, 4))
    down, cordoned, broken, card_lost = (draw(st.just(range(0)) | spans) for _ in range(4))
    plain = MadeNode(name, cards, down=down, cordoned=cordoned, broken=broken, card_lost=card_lost)
    if kind == "slices":
        return replace(plain, slices=draw(st.integers(2, 5)))
    if kind == "whole":
        swapped = draw(st.none() | st.integers(1, HOURS * 60 - 1))
        return replace(plain, model=draw(st.sampled_from([H100, A100])), swapped=swapped)
    single = kind == "single"
    layout = draw(st.sampled_from(LAYOUTS[:4] if single else LAYOUTS))
    cut = cards if single else draw(st.integers(1, cards))
    instances = {profile: (count * cut, part) for profile, (count, part) in layout.items()}
    return replace(plain, instances=instances, cut=cut, single=single)


@st.composite
def clusters(draw: st.DrawFn) -> MadeCluster:
    drawn_nodes = tuple(draw(nodes(f"gpu{number}")) for number in range(draw(st.integers(1, 2))))
    pods: list[MadePod] = []
    for number in range(draw(st.integers(0, 6))):
        node = draw(st.sampled_from(drawn_nodes))
        resource = draw(st.sampled_from(sorted(node.resources())))
        units = node.resources()[resource][0]
        pod = MadePod(
            draw(st.sampled_from(["ml", "web"])), f"pod-{number}", node.name, resource,
            draw(st.integers(1, units)), draw(spans), draw(st.floats(0, 1)),
        )  # fmt: skip
        base = MadeCluster(drawn_nodes, tuple(pods))
        fits = all(
            base.units_held(node, resource, minute) + pod.units <= units
            for minute in {*pod.minutes[:1], *(neighbour.minutes[0] for neighbour in pods)}
            if minute in pod.minutes
        )  # fmt: skip
        if pod.minutes and fits:
            pods.append(pod)
    gaps, silent, blind = (
        frozenset(minute for span in draw(st.lists(spans, max_size=2)) for minute in span)
        for _ in range(3)
    )
    if len(gaps) == HOURS * 60:
        gaps = frozenset()
    return MadeCluster(drawn_nodes, tuple(pods), HOURS, gaps=gaps, silent=silent, blind=blind)


def is_visible(cluster: MadeCluster, node: MadeNode) -> bool:
    """Whether exporter and kube-state-metrics told of a node in one hour."""
    dark = cluster.blind | cluster.gaps | set(node.down)
    if node.cards == 1:
        dark |= set(node.card_lost)
    hours = [range(60 * hour, 60 * hour + 60) for hour in range(cluster.hours)]
    return any(
        any(cluster.is_scraped(minute) for minute in hour) and not dark.issuperset(hour)
        for hour in hours
    )  # fmt: skip


def _with_a_lost_card(layout: int, card_lost: range) -> MadeCluster:
    """A node with one card in instances and one whole card, of which the exporter loses one."""
    node = MadeNode("gpu1", 2, instances=dict(LAYOUTS[layout]), cut=1, card_lost=card_lost)
    resource = min(node.resources())
    return MadeCluster((node,), (MadePod("ml", "pod-0", "gpu1", resource, 1, range(1)),), HOURS)


@fast_settings
@example(_with_a_lost_card(0, range(1)))
@example(_with_a_lost_card(4, range(31, 121)))
@given(clusters())
def test_every_gpu_hour_is_somewhere_and_nowhere_twice(cluster: MadeCluster) -> None:
    """One cluster is made for all of it: to make one takes longer than to report on it."""
    cost_report = make_report(cluster.history())
    adds_up(cluster, cost_report)
    pods_pay_for_what_they_held(cluster, cost_report)
    nothing_is_free_that_nobody_saw_free(cluster, cost_report)
    energy_is_given_to_somebody_and_once(cluster, cost_report)


def adds_up(cluster: MadeCluster, cost_report: Report) -> None:
    summary = cost_report.total_proof
    assert summary.installed == pytest.approx(cluster.installed(), abs=1e-6)
    somewhere = summary.tenants + summary.unallocated + summary.unavailable
    assert somewhere == pytest.approx(cluster.installed(), abs=1e-6)
    for key, sums in cost_report.lines.items():
        assert sums.hours >= 0
        if key.kind == "tenant":
            assert sums.used + sums.idle + sums.unmeasured == pytest.approx(sums.hours, abs=1e-9)
            assert min(sums.used, sums.idle, sums.unmeasured) >= 0


def pods_pay_for_what_they_held(cluster: MadeCluster, cost_report: Report) -> None:
    pods = grouped(cost_report.lines, ["namespace", "pod"])
    for pod in cluster.pods:
        node = cluster.node(pod.node)
        if node.instances and not is_visible(cluster, node):
            continue  # without an exporter nobody knows how cards are cut
        hours = pods.get(("tenant", pod.namespace, pod.name), Sums()).hours
        assert hours == pytest.approx(cluster.held_hours(pod), abs=1e-6), pod


def nothing_is_free_that_nobody_saw_free(cluster: MadeCluster, cost_report: Report) -> None:
    assert cost_report.reasons["free"] <= cluster.free() + 1e-6
    dark = len(cluster.gaps | cluster.silent) / 60 * sum(node.cards for node in cluster.nodes)
    if not cluster.pods:
        assert cost_report.total_proof.unavailable >= dark - 1e-6


def energy_is_given_to_somebody_and_once(cluster: MadeCluster, cost_report: Report) -> None:
    measured = sum(
        100.0 * node.cards / 60_000
        for node in cluster.nodes for minute in cluster.minutes
        if minute not in cluster.gaps | cluster.blind and minute not in node.down
        if minute not in node.card_lost or node.cards > 1
    )  # fmt: skip
    assert total(cost_report.lines.values()).kwh == pytest.approx(measured, abs=1e-6)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", datetime(2026, 10, 25, tzinfo=UTC), 25),
        ("Europe/Berlin", datetime(2026, 3, 29, tzinfo=UTC), 23),
        ("America/New_York", datetime(2026, 11, 1, tzinfo=UTC), 25),
        ("Asia/Kolkata", datetime(2026, 10, 25, tzinfo=UTC), 24),
    ],
)
def test_days_are_the_site_s_and_may_have_23_or_25_hours(
    zone: str, day: datetime, hours: int
) -> None:
    start = int(day.timestamp()) - 86400
    if zone == "Asia/Kolkata":
        start += 1800  # its midnights are at half past in UTC
    node = MadeNode("gpu1", 2)
    pod = MadePod("ml", "train", "gpu1", GPU_RESOURCE, 1, range(72 * 60))
    cluster = MadeCluster((node,), (pod,), hours=72, start=start)
    history = cluster.history()
    cost_report = report(history, Period(history.window, time_zone(zone)), PRICES)
    days = grouped(cost_report.lines, ["day"])
    assert days["tenant", f"{day:%Y-%m-%d}"].hours == pytest.approx(hours)
    assert cost_report.total_proof.installed == pytest.approx(144)


def test_time_slices_of_one_gpu_are_parts_of_it() -> None:
    node = MadeNode("gpu1", 2, slices=4)
    pods = tuple(
        MadePod("ml", f"pod-{number}", "gpu1", SHARED, 1, range(120)) for number in range(3)
    )
    cost_report = make_report(MadeCluster((node,), pods, hours=2).history())
    assert cost_report.total_proof.tenants == pytest.approx(3 * 2 / 4)
    assert cost_report.total_proof.unallocated == pytest.approx(4 - 1.5)
