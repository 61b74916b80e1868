"""Reports of costs: hours, teams, money, and what is no report."""

from __future__ import annotations

from datetime import UTC

import pytest

from gpuboot.usage.cost.cost_lines import UNOWNED, Sums, grouped, total
from gpuboot.usage.cost.cost_report import Report, check, report
from gpuboot.usage.cost.errors import ConservationError, CostError
from gpuboot.usage.cost.ledger import ledger
from gpuboot.usage.cost.period import Period
from gpuboot.usage.cost.prices import Prices, check_models, with_options
from gpuboot.usage.series import History, StepSeries
from gpuboot.usage.shares import mig_profile, share
from tests.unit.made_cluster import A100, GPU_RESOURCE, H100, MadeCluster, MadeNode, MadePod

PRICES = Prices("EUR", {H100: 2.5})
HOURS = 4
NODE = MadeNode("gpu1", 4)
TRAIN = MadePod("ml", "train", "gpu1", GPU_RESOURCE, 2, range(120), 0.5)
WEB = MadePod("web", "serve", "gpu1", GPU_RESOURCE, 1, range(60, 240), 0.1)


def answers(
    *nodes: MadeNode, pods: tuple[MadePod, ...] = (TRAIN, WEB), **options: object
) -> History:
    """With the label `team` on the namespace ml alone."""
    history = MadeCluster(nodes or (NODE,), pods, HOURS, **options).history()  # type: ignore[arg-type]
    label = StepSeries(
        {"namespace": "ml", "label_team": "research"}, dict.fromkeys(history.window.steps, 60.0)
    )
    return History(history.window, {**history.series, "teams": (label,)}, history.metadata)


def make_report(
    history: History | None = None,
    prices: Prices = PRICES,
) -> Report:
    history = history or answers()
    period = Period(history.window, UTC)
    return report(history, period, prices)


def hours(cost_report: Report, *by: str) -> dict[tuple[str, ...], float]:
    return {name: round(sums.hours, 6) for name, sums in grouped(cost_report.lines, by).items()}


def test_hours_are_held_hours_and_used_is_what_worked() -> None:
    cost_report = make_report()
    assert hours(cost_report, "team", "namespace", "pod") == {
        ("tenant", "research", "ml", "train"): 4.0,
        ("tenant", UNOWNED, "web", "serve"): 3.0,
        ("unallocated", "", "", ""): 9.0,
    }
    train = grouped(cost_report.lines, ["pod"])["tenant", "train"]
    assert (train.used, train.idle, train.unmeasured) == (2.0, 2.0, 0.0)
    assert (train.sm, train.efficiency) == (1.5, 0.5)
    assert train.gpu_cost == 10.0
    sums = total(cost_report.lines.values())
    assert sums.efficiency == pytest.approx((2.0 + 0.3) / 7), "of what was held, not of all"
    assert total(cost_report.lines.values()).gpu_cost == pytest.approx(16 * 2.5)
    assert f"{UNOWNED}: namespaces without label" in " ".join(cost_report.notes)


def test_a_namespace_that_changes_its_team() -> None:
    history = answers()
    first, *later = history.window.steps
    teams = (
        StepSeries({"namespace": "ml", "label_team": "a"}, {first: 60.0}),
        StepSeries({"namespace": "ml", "label_team": "b"}, dict.fromkeys(later, 60.0)),
    )
    cost_report = make_report(History(history.window, {**history.series, "teams": teams}))
    assert (
        hours(cost_report, "team")["tenant", "a"]
        == hours(cost_report, "team")["tenant", "b"]
        == 2.0
    )


def test_gaps_are_unknown_and_broken_or_closed_is_unavailable() -> None:
    node = MadeNode("gpu1", 4, cordoned=range(180, 240), broken=range(120, 180))
    cost_report = make_report(answers(node, gaps=frozenset(range(60))))
    assert cost_report.reasons == pytest.approx(
        {"free": 1 + 2, "closed": 3, "unhealthy": 1, "unknown": 4, "stranded": 0, "missing": 0}
    )
    assert cost_report.total_proof.tenants == pytest.approx(2 + 3)
    assert any("4.00 GPU hours are unknown" in note for note in cost_report.notes)


def test_a_lost_node_stays_installed_by_the_inventory_s_promise() -> None:
    second_node = MadeNode("gpu2", 8)
    history = answers(NODE, second_node)
    lost_from = history.window.start + 3600
    query_names = ("reported", "capacity", "free", "closed", "cards", "devices", "seen")
    series = dict(history.series)
    for name in query_names:
        series[name] = tuple(
            StepSeries(step_series.labels, {s: v for s, v in step_series.values.items()
                                    if step_series.labels["node"] == "gpu1" or s < lost_from})
            for step_series in history.of(name)
        )  # fmt: skip
    cost_report = make_report(History(history.window, series))
    assert cost_report.total_proof.installed == pytest.approx(12 * HOURS)
    assert cost_report.reasons["unknown"] == pytest.approx(8 * 3)


def test_a_gpu_that_vanished_from_the_exporter_makes_no_time_slices_of_the_others() -> None:
    """The kubelet goes on to offer two, and the exporter shows one."""
    pair = MadeNode("gpu1", 2, card_lost=range(60, 240), broken=range(60, 240))
    pods = (MadePod("ml", "train", "gpu1", GPU_RESOURCE, 1, range(240)),)
    cost_report = make_report(answers(pair, pods=pods))
    assert cost_report.total_proof.tenants == pytest.approx(4)
    assert cost_report.reasons["unhealthy"] == pytest.approx(3)


def test_other_models_have_other_prices_or_none() -> None:
    swapped = MadeNode("gpu1", 4, swapped=120)
    cost_report = make_report(answers(swapped), Prices("EUR", {H100: 2.5, "*": 1.0}))
    assert [proof.model for proof in cost_report.proofs] == [A100, H100]
    assert total(cost_report.lines.values()).gpu_cost == pytest.approx(8 * 2.5 + 8 * 1.0)
    cost_report = make_report(answers(swapped))
    assert total(cost_report.lines.values()).unpriced == pytest.approx(8)
    assert f"8.00 GPU hours cost nothing: no price for {A100}" in cost_report.notes
    cost_report = make_report(prices=Prices())
    assert "there are hours and no money" in " ".join(cost_report.notes)


def test_energy_is_the_counters_and_goes_to_who_held_the_gpus() -> None:
    cost_report = make_report(prices=Prices("EUR", {}, 0.5, 2.0))
    pods = grouped(cost_report.lines, ["pod"])
    assert pods["tenant", "train"].kwh == pytest.approx(0.4)
    assert pods["tenant", "serve"].kwh == pytest.approx(0.3)
    assert total(cost_report.lines.values()).kwh == pytest.approx(1.6)
    assert pods["tenant", "train"].energy_cost == pytest.approx(0.4 * 2 * 0.5)


def test_activity_that_nobody_measured_is_neither_used_nor_idle() -> None:
    cost_report = make_report(answers(blind=frozenset(range(60))))
    train = grouped(cost_report.lines, ["pod"])["tenant", "train"]
    assert (train.used, train.idle, train.unmeasured) == pytest.approx((1, 1, 2))
    assert any("nobody measured them" in note for note in cost_report.notes)


def test_more_held_than_there_is_for_long_is_an_error_with_a_remedy() -> None:
    history = answers()

    def tripled(steps: int) -> History:
        held_series = tuple(
            StepSeries(
                step_series.labels,
                {step: value * (3 if place < steps else 1)
                 for place, (step, value) in enumerate(step_series.values.items())},
            )
            for step_series in history.of("held")
        )  # fmt: skip
        return History(history.window, {**history.series, "held": held_series})

    with pytest.raises(ConservationError, match=r"gpu1: .* more are held or offered") as error:
        make_report(tripled(4))
    assert "correct `gpus` of the node" in str(error.value)


def test_a_moment_in_which_two_pods_hold_one_gpu_is_a_note() -> None:
    after = MadePod("ml", "next", "gpu1", GPU_RESOURCE, 4, range(119, 180))
    cost_report = make_report(answers(pods=(TRAIN, after)))
    assert any("counted together for a moment" in note for note in cost_report.notes)
    assert cost_report.total_proof.holds


def test_a_report_that_does_not_add_up_is_none() -> None:
    history = answers()
    book = ledger(history)
    cost_report = make_report(history)
    check(cost_report, book)
    next(iter(cost_report.lines.values())).hours += 0.001
    with pytest.raises(ConservationError, match="does not add up"):
        check(cost_report, book)
    next(iter(cost_report.lines.values())).hours -= 0.001
    cost_report.lines[next(iter(cost_report.lines))].add(Sums(gpu_cost=0.01))
    with pytest.raises(ConservationError, match="cost of GPUs"):
        check(cost_report, book)


def test_no_gpu_is_no_report() -> None:
    empty = History(answers().window, {})
    with pytest.raises(CostError, match="no GPU is known"):
        make_report(empty)


@pytest.mark.parametrize(
    ("profile", "model", "part"),
    [
        ("", H100, 1), ("1g.10gb", H100, 1 / 7), ("1g.20gb", H100, 1 / 4), ("2g.20gb", H100, 2 / 7),
        ("3g.40gb", H100, 1 / 2), ("4g.40gb", H100, 4 / 7), ("7g.80gb", H100, 1),
        ("1g.10gb", A100, 1 / 4), ("1g.5gb", A100, 1 / 7), ("1g.10gb+me", H100, 1 / 7),
        ("1c.3g.40gb", H100, 1 / 6), ("1g.6gb", "NVIDIA A30", 1 / 4), ("4g.24gb", "NVIDIA A30", 1),
        ("1g.18gb", "NVIDIA H200", 1 / 7), ("1g.35gb", "NVIDIA H200", 1 / 4),
        ("1g.12gb", "NVIDIA GH200 480GB", 1 / 7), ("3g.40gb", "", 1 / 2), ("something", "", 1),
    ],
)  # fmt: skip
def test_shares_of_a_gpu(profile: str, model: str, part: float) -> None:
    assert share(profile, model) == pytest.approx(part)


@pytest.mark.parametrize(
    ("resource", "profile"),
    [
        ("nvidia_com_gpu", ""), ("nvidia_com_gpu_shared", ""), ("nvidia.com/gpu", ""),
        ("nvidia_com_mig_1g_10gb", "1g.10gb"), ("nvidia_com_mig_1g_10gb_me", "1g.10gb.me"),
        ("nvidia_com_mig_1g_10gb_shared", "1g.10gb"),
    ],
)  # fmt: skip
def test_profiles_of_resources(resource: str, profile: str) -> None:
    assert mig_profile(resource) == profile


def test_prices_of_the_command_line() -> None:
    prices = with_options(PRICES, [f"{A100}=1.5", "*=1"], "USD")
    assert (prices.of(A100), prices.of(H100), prices.of("other")) == (1.5, 2.5, 1.0)
    assert prices.currency == "USD"
    check_models([f"{A100}=1", "*=1"], [A100])
    with pytest.raises(CostError, match=f"no GPU of this model\n    remedy: one of: {A100}"):
        check_models([f"{H100}=1"], [A100])
    for wrong_price in ("3", "=3", "A=-1", "A=many", "A=inf"):
        with pytest.raises(CostError, match="is no price"):
            with_options(PRICES, [wrong_price], None)
