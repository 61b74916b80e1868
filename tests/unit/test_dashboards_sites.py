"""The dashboards as settings and the kind of site make them."""

from __future__ import annotations

import json
from typing import Any

from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.dashboards import config_maps, dashboards
from gpuboot.monitoring.rules import ON_DOCKER_HOSTS
from gpuboot.telemetry.expressions import metric_names
from lab.dashboard_preview.panels import TimeRange, defaults, names, panels

SETTINGS = parse_settings({"cost": {"gpu_hour": {"*": 2.5}}})
BOARDS = dashboards(SETTINGS)
VALUES = TimeRange(0, 3600, 30).variables(15)


def titled(title: str, boards: dict[str, dict[str, Any]] = BOARDS) -> list[dict[str, Any]]:
    return [
        panel for board in boards.values() for panel in panels(board) if panel["title"] == title
    ]


def test_on_docker_hosts_nothing_is_asked_that_nobody_could_answer() -> None:
    boards = dashboards(SETTINGS, ON_DOCKER_HOSTS)
    assert set(boards) == set(BOARDS) - {"gpu-namespace", "gpu-applications"}
    for uid, board in boards.items():
        exprs = [target["expr"] for panel in panels(board) for target in panel["targets"]]
        metrics = set().union(*map(metric_names, exprs))
        assert not [name for name in metrics if name.startswith("kube_") or "gpu_requested" in name]
        # most of it is about GPUs, and stays
        assert len(panels(board)) > len(panels(BOARDS[uid])) / 2
        assert {name for expr in exprs for name in names(expr)} <= defaults(board).keys() | VALUES


def test_on_docker_hosts_choices_of_pods_are_hidden_and_still_defined() -> None:
    def hidden(boards: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
        return {
            (uid, variable["name"])
            for uid, board in boards.items()
            for variable in board["templating"]["list"]
            if variable.get("hide")
        }

    boards = dashboards(SETTINGS, ON_DOCKER_HOSTS)
    assert hidden(boards) == {("gpu-profile", "namespace"), ("gpu-profile", "pod")}
    assert not hidden(BOARDS)


def test_prices_bring_cost_and_without_them_there_is_none() -> None:
    free = json.dumps(dashboards(parse_settings({})))
    assert "price_per_hour" not in free
    assert "currency" not in free
    priced = json.dumps(
        dashboards(parse_settings({"cost": {"currency": "EUR", "gpu_hour": {"NVIDIA H100": 3}}}))
    )
    assert "price_per_hour" in priced
    assert "currencyEUR" in priced


def test_a_currency_without_a_sign_in_grafana_is_written_out() -> None:
    document = json.dumps(
        dashboards(parse_settings({"cost": {"currency": "XDR", "gpu_hour": {"*": 3}}}))
    )
    assert "currency:XDR" in document


def test_a_site_s_xid_classes_are_shown() -> None:
    def reboot(settings: dict[str, Any]) -> str:
        (panel,) = (
            p
            for p in panels(dashboards(parse_settings(settings))["gpu-health"])
            if "by code" in p["title"]
        )
        return str(panel["targets"])

    assert 'xid=~"79"' in reboot({})
    assert 'xid=~"79|13"' in reboot({"alerts": {"xid": {13: "reboot"}}}) or (
        'xid=~"13|79"' in reboot({"alerts": {"xid": {13: "reboot"}}})
    )


def test_config_maps_are_what_the_sidecar_looks_for() -> None:
    objects = config_maps(parse_settings({"monitoring": {"namespace": "watch"}}))
    assert len(objects) == len(BOARDS)
    for item in objects:
        meta = item["metadata"]
        assert meta["namespace"] == "watch"
        assert meta["labels"]["grafana_dashboard"] == "1"
        assert meta["labels"]["app.kubernetes.io/managed-by"] == "gpuboot"
        assert meta["annotations"] == {"grafana_folder": "GPU"}
        ((name, text),) = item["data"].items()
        assert json.loads(text)["uid"] + ".json" == name
        assert len(text.encode()) < 256 * 1024  # of kubectl apply's annotation; etcd takes 1 MiB


def test_what_needs_repair_counts_what_is_to_be_replaced() -> None:
    """A GPU to be replaced is among those that need repair: the two come from the same alerts."""
    (repair,), (replaced,) = titled("Need repair"), titled("Replace")
    repair_expr, replace_expr = (panel["targets"][0]["expr"] for panel in (repair, replaced))
    assert 'gpu_action=~"replace"' in replace_expr
    assert repair_expr == replace_expr.replace('"replace"', '"drain|reset|reboot|replace"')


def test_firing_alerts_tell_the_action_and_lead_to_the_runbook() -> None:
    published = parse_settings({"alerts": {"runbooks": "https://git.example.com/docs/runbooks/"}})
    panels = titled("Firing alerts", dashboards(published))
    assert len(panels) == 3
    for panel in panels:
        headings = panel["transformations"][-1]["options"]["renameByName"]
        assert headings["gpu_action"] == "Action"
        (link,) = next(
            item["value"]
            for override in panel["fieldConfig"]["overrides"]
            if override["matcher"]["options"] == "Alert"
            for item in override["properties"]
            if item["id"] == "links"
        )
        assert link["url"] == "https://git.example.com/docs/runbooks/${__data.fields.Alert}.md"
    # a path in a repository is no address
    assert "${__data.fields.Alert}" not in json.dumps(BOARDS)
