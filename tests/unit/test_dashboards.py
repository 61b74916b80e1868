"""The dashboards: sound for Grafana, true to what is collected and recorded."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.dashboards import boards, dashboards
from gpuboot.monitoring.dashboards.build import WIDTH
from gpuboot.monitoring.rules import recordings
from gpuboot.telemetry import BY_NAME, choose
from gpuboot.telemetry.expressions import metric_names
from lab.dashboard_preview.panels import (
    TimeRange,
    UnknownVariable,
    defaults,
    interpolate,
    names,
    panels,
)
from tests.tools import promtool

SETTINGS = parse_settings({"cost": {"gpu_hour": {"*": 2.5}}})
NODES = (Node("gpu1", "gpu1", "10.0.0.1", "worker", 8, False),)
BOARDS = dashboards(SETTINGS)
PANELS = [(uid, panel) for uid, board in BOARDS.items() for panel in panels(board)]
TARGETS = [(uid, panel, target) for uid, panel in PANELS for target in panel["targets"]]
VALUES = TimeRange(0, 3600, 30).variables(15)
# What others than our exporter and rules give: kube-state-metrics, node exporter, Prometheus.
OTHER_METRICS = {
    *("up", "ALERTS", "ALERTS_FOR_STATE", "node_uname_info", "node_cpu_seconds_total"),
    *("node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"),
    *("kube_node_spec_unschedulable", "kube_node_spec_taint", "kube_namespace_labels"),
    *("kube_pod_created", "kube_pod_status_phase", "kube_pod_container_resource_requests"),
    *("kube_resourcequota", "kube_node_status_condition"),
}
IDS = [f"{uid}: {panel['title']}" for uid, panel in PANELS]


def exprs() -> list[str]:
    return [target["expr"] for _, _, target in TARGETS]


def test_there_are_six_with_fixed_addresses() -> None:
    names = {"cluster", "node", "profile", "namespace", "health", "applications"}
    assert set(BOARDS) == {f"gpu-{name}" for name in names}
    for uid, board in BOARDS.items():
        assert board["uid"] == uid
        assert board["schemaVersion"] >= 39
        assert "__inputs" not in json.dumps(board)


def test_panels_have_own_numbers_and_do_not_overlap() -> None:
    for board in BOARDS.values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))
        occupied: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = set(
                itertools.product(
                    range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
                )
            )
            assert at["x"] + at["w"] <= WIDTH
            assert not cells & occupied, panel["title"]
            occupied |= cells


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=IDS)
def test_panel_is_of_a_kind_that_stays_and_says_how_to_read_it(
    uid: str, panel: dict[str, Any]
) -> None:
    kinds = {"timeseries", "stat", "table", "state-timeline", "heatmap", "bargauge"}
    assert panel["type"] in kinds
    assert len(panel["description"]) > 20
    assert panel["targets"]
    for part in (panel, *panel["targets"]):
        assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=IDS)
def test_every_variable_that_is_used_exists(uid: str, panel: dict[str, Any]) -> None:
    known_names = {variable["name"] for variable in BOARDS[uid]["templating"]["list"]}
    for target in panel["targets"]:
        assert names(target["expr"]) <= known_names | VALUES.keys()
    # links: Grafana's own beside the dashboard's
    text = json.dumps(panel["fieldConfig"])
    assert names(text) - {"__data", "__url_time_range"} <= known_names


def test_every_variable_is_used() -> None:
    for uid, board in BOARDS.items():
        used = set().union(*(names(t["expr"]) for p in panels(board) for t in p["targets"]))
        for variable in board["templating"]["list"]:
            assert variable["name"] in used | {"datasource"}, (uid, variable["name"])
            if variable["type"] == "query":
                assert names(variable["query"]["query"]) <= set(defaults(board))
                assert variable["current"]["value"] == ["$__all"]


def test_every_metric_is_collected_recorded_or_kubernetes() -> None:
    recorded = {r.name for group in recordings(SETTINGS, NODES).values() for r in group}
    known_metrics = {field.name for field in choose(())} | recorded | OTHER_METRICS
    queried = set().union(*map(metric_names, exprs()))
    assert queried - known_metrics == set()
    # and nothing is allowed that nobody asks for
    assert OTHER_METRICS - queried == set()


def test_every_series_of_a_variable_exists() -> None:
    recorded = {r.name for group in recordings(SETTINGS, NODES).values() for r in group}
    for board in BOARDS.values():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                query = re.fullmatch(r"label_values\((.*), \w+\)", variable["query"]["query"])
                assert query, variable
                assert metric_names(query[1]) <= BY_NAME.keys() | recorded


def test_every_query_parses(tmp_path: Path) -> None:
    """By promtool, each as a rule: with everything chosen, and with one of several chosen."""
    rule_list: list[dict[str, str]] = []
    for uid, _, target in TARGETS:
        for values in (defaults(BOARDS[uid]), dict.fromkeys(defaults(BOARDS[uid]), "(a|b-1)")):
            expr = interpolate(target["expr"], {**values, **VALUES})
            rule_list.append({"record": f"panel:query:{len(rule_list)}", "expr": expr})
    rules = tmp_path / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rule_list}]}))
    result = subprocess.run(
        [str(promtool()), "check", "rules", str(rules)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rule_list)} rules found" in result.stdout


# metric's unit in the field table -> (scale that must stand in the query, units it may be shown in)
UNIT_FORMATS = {
    "ratio": ("", {"percentunit"}),
    "MiB": ("", {"mbytes"}),
    "°C": ("", {"celsius"}),
    "W": ("", {"watt"}),
    "mJ": ("/ 1e3", {"joule"}),
    "B/s": ("", {"Bps"}),
    "MHz": (r"\* 1e6", {"hertz"}),
}


def _displayed(uid: str, panel: dict[str, Any]) -> list[tuple[str, str]]:
    """(expression, the unit it is shown in) of each target."""
    headings = {}
    for step in panel.get("transformations", []):
        headings = step["options"].get("renameByName", {})
    units = {
        override["matcher"]["options"]: prop["value"]
        for override in panel["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "unit"
    }
    default = panel["fieldConfig"]["defaults"]["unit"]
    is_multi = len(panel["targets"]) > 1
    return [
        (
            target["expr"],
            units.get(headings.get(f"Value #{target['refId']}" if is_multi else "Value"), default),
        )
        for target in panel["targets"]
    ]


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=IDS)
def test_units_fit_what_is_measured(uid: str, panel: dict[str, Any]) -> None:
    for expr, unit in _displayed(uid, panel):
        metrics = metric_names(expr)
        if "/ 60" in expr or expr.startswith("count"):
            continue  # hours and counts are no longer in the metric's unit
        for field in (BY_NAME[name] for name in metrics if name in BY_NAME):
            if field.unit in UNIT_FORMATS and panel["type"] != "state-timeline":
                scale, allowed = UNIT_FORMATS[field.unit]
                assert unit in allowed, (field.name, unit)
                assert re.search(scale, expr), (field.name, expr)
        if any(re.search(r":(ratio|avg\w*|max1h|ratio5m)$", name) for name in metrics):
            assert unit == "percentunit" or panel["type"] == "state-timeline", expr


def test_ratios_have_the_ratio_s_unit_wherever_a_recorded_ratio_is_shown() -> None:
    units = {
        unit
        for uid, panel in PANELS
        for expr, unit in _displayed(uid, panel)
        if metric_names(expr) <= {"gpu:sm_active:avg5m", "cluster:gpu_allocation:ratio"}
    }
    assert units == {"percentunit"}


def test_dashboards_lead_to_each_other_with_what_was_chosen() -> None:
    for board in BOARDS.values():
        (link,) = board["links"]
        assert link["type"] == "dashboards"
        assert link["includeVars"]
        assert link["keepTime"]
        assert set(link["tags"]) <= set(board["tags"])


def test_links_of_tables_lead_to_dashboards_that_have_the_variables() -> None:
    urls = [
        (panel["title"], link["url"])
        for _, panel in PANELS
        for override in panel["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "links"
        for link in prop["value"]
    ]
    assert any(url.startswith("/d/gpu-profile/") for _, url in urls)
    for title, url in urls:
        address = re.match(r"/d/([a-z-]+)/\?", url)
        assert address, url
        assert address[1] in BOARDS, url
        assert "var-" in url.replace("var-datasource", ""), (title, url)
        assert "${__url_time_range}" in url


def test_columns_are_named_by_the_panel_they_stand_in() -> None:
    for uid, panel in PANELS:
        if panel["type"] != "table" or "gridPos" not in panel:
            continue
        renamed = [
            title
            for step in panel["transformations"]
            for title in step["options"].get("renameByName", {}).values()
        ]
        assert len(renamed) == len(set(renamed)), (uid, panel["title"])
        for override in panel["fieldConfig"]["overrides"]:
            assert override["matcher"]["options"] in renamed


def test_alerts_are_marked_in_every_graph() -> None:
    for board in BOARDS.values():
        (mark,) = board["annotations"]["list"]
        assert mark["enable"]
        assert 'alertstate="firing"' in mark["expr"]
        assert names(mark["expr"]) <= set(defaults(board))


def test_tables_of_panels_name_each_once() -> None:
    for board in boards(SETTINGS):
        titles = [(row.title, panel.title) for row in board.rows for panel in row.panels]
        assert len(titles) == len(set(titles))


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(UnknownVariable, match=r"\$nodes"):
        interpolate('up{node="$nodes"}', {"node": "a"})


def test_rows_of_every_table_are_sorted() -> None:
    for _, panel in PANELS:
        if panel["type"] == "table":
            assert panel["options"]["sortBy"], panel["title"]
