"""What dashboards say of nodes and GPUs of every kind: choices, what is free, who works."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.dashboards import (
    cluster_dashboard,
    dashboards,
    gpu_hours,
    node_states,
    profile_dashboard,
)
from gpuboot.monitoring.dashboards.variables import VARIABLES
from lab.dashboard_preview.page import WIDTH
from lab.dashboard_preview.panels import panels
from tests.populations.model import Population
from tests.populations.page import Page
from tests.populations.table import POPULATIONS
from tests.unit.test_dashboards_queries import assert_samples

NARROW = 800
LETTER = 7.0  # px of a letter of a panel's title in Grafana, 14 px high
BOARDS = dashboards(parse_settings({"cost": {"gpu_hour": {"*": 2.5}}}))


def exported(of: Population) -> dict[str, str]:
    """All that the exporter of a population shows, as promtool's series."""
    series = {}
    for metric, labels, value in Page(of).samples():
        inside = ",".join(f'{key}="{text}"' for key, text in {**labels, "node": of.node}.items())
        series[f"{metric}{{{inside}}}"] = f"{value!r}x5"
    return series


@pytest.mark.parametrize("of", POPULATIONS.values(), ids=str)
@pytest.mark.parametrize("name", ["node", "modelName", "gpu"])
def test_every_kind_of_gpu_can_be_chosen(name: str, of: Population, tmp_path: Path) -> None:
    values = {"node": {of.node}, "modelName": {of.model}, "gpu": {str(c.index) for c in of.cards}}
    expected = [(f'{{{name}="{value}"}}', 1.0) for value in sorted(values[name])]
    assert_samples(
        tmp_path, f"group by ({name}) ({VARIABLES[name].series})", exported(of), expected, "2m"
    )


def test_a_promised_node_that_never_answered_can_be_chosen(tmp_path: Path) -> None:
    series = {'node:gpu_expected:count{node="a"}': "8x5"}
    expr = f"group by (node) ({VARIABLES['node'].series})"
    assert_samples(tmp_path, expr, series, [('{node="a"}', 1.0)], "2m")


def test_gpus_of_vgpu_guests_have_their_price(tmp_path: Path) -> None:
    guest = POPULATIONS["vgpu-guest"]
    series = exported(guest) | {f'gpu:price_per_hour{{modelName="{guest.model}"}}': "0.6x5"}
    assert_samples(
        tmp_path, gpu_hours.NODE_PRICE, series, [(f'{{node="{guest.node}"}}', 0.6)], "2m"
    )


def nodes(**closed: dict[str, str]) -> dict[str, str]:
    """Three nodes with 8 GPUs, of which 2 are held. + closed: node -> more series"""
    series: dict[str, str] = {}
    for name in ("a", "b", "c"):
        ready = f'node="{name}",condition="Ready",status="true"'
        series |= {
            f'node:gpu_capacity:sum{{node="{name}"}}': "8x5",
            f'node:gpu_allocatable:sum{{node="{name}"}}': "8x5",
            f'node:gpu_requested:sum{{node="{name}"}}': "2x5",
            f'kube_node_spec_unschedulable{{node="{name}"}}': "0x5",
            f"kube_node_status_condition{{{ready}}}": "1x5",
        } | closed.get(name, {})
    return series


CLOSED = {
    "cordoned": {'kube_node_spec_unschedulable{node="b"}': "1x5"},
    "not ready": {
        'kube_node_status_condition{node="b",condition="Ready",status="true"}': "0x5",
        'kube_node_spec_taint{node="b",key="node.kubernetes.io/unreachable"}': "1x5",
    },
    "closed": {
        'kube_node_spec_taint{node="b",key="gpuboot.io/unproven",effect="NoSchedule"}': "1x5"
    },
}


@pytest.mark.parametrize("reason", CLOSED)
def test_a_closed_node_stands_among_the_free_gpus_with_none_and_why(
    reason: str, tmp_path: Path
) -> None:
    displayed: dict[str, list[tuple[str, float]]] = {}
    for query in node_states.FREE_BY_NODE.queries:
        of_b = query.legend == f"{{{{node}}}} ({reason})"
        displayed[query.legend] = [('{node="b"}', 0.0)] if of_b else []
    displayed["{{node}}"] = [('{node="a"}', 6.0), ('{node="c"}', 6.0)]
    assert f"{{{{node}}}} ({reason})" in displayed
    for query in node_states.FREE_BY_NODE.queries:
        assert_samples(tmp_path, query.expr, nodes(b=CLOSED[reason]), displayed[query.legend], "2m")


@pytest.mark.parametrize("reason", CLOSED)
def test_a_closed_node_is_marked_in_the_table_of_nodes(reason: str, tmp_path: Path) -> None:
    (column,) = (c for c in cluster_dashboard.NODE_TABLE.columns if c.title == "New pods")
    (state,) = (state for state in column.states if state.text == reason)
    expected = [('{node="a"}', 0.0), ('{node="b"}', float(state.value)), ('{node="c"}', 0.0)]
    assert_samples(tmp_path, column.expr, nodes(b=CLOSED[reason]), expected, "2m")
    assert_samples(
        tmp_path,
        node_states.CLOSED_NODES.expressions[0],
        nodes(b=CLOSED[reason]),
        [("{}", 1)],
        "2m",
    )


def test_a_taint_of_others_closes_no_node(tmp_path: Path) -> None:
    """Pods that ask for GPUs tolerate nvidia.com/gpu, and teams their own."""
    taints = {
        f'kube_node_spec_taint{{node="b",key="{key}",effect="NoSchedule"}}': "1x5"
        for key in ("nvidia.com/gpu", "team.example.com/a")
    }
    expr = node_states.CLOSED_NODES.expressions[0]
    assert_samples(tmp_path, expr, nodes(b=taints), [("{}", 0)], "2m")


def shares(*gpus: tuple[float, float]) -> dict[str, str]:
    """Engine and SM of the GPUs of a node."""
    series = {}
    for number, values in enumerate(gpus):
        labels = f'node="n",UUID="u{number}",gpu="{number}",modelName="m"'
        for metric, value in zip(("engine", "sm"), values, strict=True):
            series[f"gpu:{metric}_active:avg5m{{{labels}}}"] = f"{value}x5"
    return series


(SM_NOW,) = (panel for panel in profile_dashboard.NOW if panel.title == "SM active")


@pytest.mark.parametrize("expr", [cluster_dashboard.SM_AT_WORK, SM_NOW.expressions[0]])
def test_idle_gpus_do_not_dilute_sm_activity(expr: str, tmp_path: Path) -> None:
    series = shares((0.98, 0.9), (0.6, 0.7), (0.01, 0.0), (0.0, 0.0))
    assert_samples(tmp_path, expr, series, [("{}", 0.8)], "2m")
    assert_samples(tmp_path, expr, shares((0.01, 0.0), (0.0, 0.0)), [], "2m")


def test_means_of_gpus_at_work_say_idle_where_none_works() -> None:
    titles = {"SM active", "Occupancy", "Tensor active", "DRAM active"}
    for panel in profile_dashboard.NOW:
        assert (panel.empty == "idle") == (panel.title in titles)
    no_values = {
        panel["title"]: panel["fieldConfig"]["defaults"].get("noValue")
        for panel in panels(BOARDS["gpu-profile"])
        if panel["type"] == "stat"
    }
    assert {title for title, empty in no_values.items() if empty == "idle"} == titles


def _stats() -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (f"{uid}: {panel['title']}", panel)
        for uid, board in BOARDS.items()
        for panel in panels(board)
        if panel["type"] == "stat"
    ]


@pytest.mark.parametrize(("title", "panel"), _stats(), ids=[name for name, _ in _stats()])
@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_titles_of_numbers_fit_above_them(width: int, title: str, panel: Mapping[str, Any]) -> None:
    assert len(panel["title"]) * LETTER <= width / 24 * panel["gridPos"]["w"] - 16


def test_gpu_hours_are_no_days() -> None:
    """Grafana writes 48 of its own hours as 2 days; GPU hours are a product, not a time."""
    units = re.findall(r'"unit": "([^"]+)"|\'unit\': \'([^\']+)\'', str(BOARDS["gpu-namespace"]))
    assert ("", "suffix:GPU h") in units
    assert not [unit for unit in units if "h" in unit]


def test_lines_of_several_measures_differ_by_their_dashes() -> None:
    for board in BOARDS.values():
        for panel in panels(board):
            if panel["type"] != "timeseries" or len(panel["targets"]) < 2:
                continue
            if not all("{{" in target["legendFormat"] for target in panel["targets"]):
                continue
            styles = {
                override["matcher"]["options"]: str(override["properties"][0]["value"])
                for override in panel["fieldConfig"]["overrides"]
                if override["matcher"]["id"] == "byFrameRefID"
            }
            assert len(set(styles.values())) == len(panel["targets"]) - 1, panel["title"]


def test_each_dashboard_has_a_small_picture_in_the_documents() -> None:
    folder = Path(__file__).parents[2] / "docs"
    text = (folder / "dashboards.md").read_text()
    for uid, board in BOARDS.items():
        assert f"![{board['title']}](pictures/{uid}.png)" in text
        assert (folder / f"pictures/{uid}.png").stat().st_size < 200_000
