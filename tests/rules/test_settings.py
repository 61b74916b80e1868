"""What a site can change about alerts, and which mistakes it is told."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config import settings
from gpuboot.docs import runbook_pages
from gpuboot.monitoring import rules
from gpuboot.monitoring.rules.promql import quoted
from gpuboot.site.load_site import load
from tests.rules.suite import NODES


def rule(data: dict[str, Any], name: str) -> dict[str, Any] | None:
    groups = rules.groups(settings.parse_settings(data), NODES)
    matches = [rule for group in groups for rule in group["rules"] if rule.get("alert") == name]
    return matches[0] if matches else None


def test_overrides_change_one_alert() -> None:
    over = {"severity": "info", "hold_for": "1h", "threshold": 31}
    alert_rule = rule({"alerts": {"rules": {"GPUThermalMarginLow": over}}}, "GPUThermalMarginLow")
    assert alert_rule is not None
    assert alert_rule["for"] == "1h"
    assert alert_rule["labels"]["severity"] == "info"
    assert alert_rule["expr"].endswith("< 31")


def test_a_threshold_of_zero_is_a_threshold() -> None:
    over = {"threshold": 0}
    alert_rule = rule({"alerts": {"rules": {"GPUThermalMarginLow": over}}}, "GPUThermalMarginLow")
    assert alert_rule is not None
    assert alert_rule["expr"].endswith("< 0")


def test_alerts_can_be_switched_off_one_by_one_and_all_together() -> None:
    assert rule({"alerts": {"rules": {"GPULost": {"enabled": False}}}}, "GPULost") is None
    groups = rules.groups(settings.parse_settings({"alerts": {"enabled": False}}), NODES)
    assert groups
    assert not [r for group in groups for r in group["rules"] if "alert" in r]


def test_labels_of_the_site_are_on_every_alert() -> None:
    alert_rule = rule({"alerts": {"labels": {"team": "infra"}}}, "GPULost")
    assert alert_rule is not None
    assert alert_rule["labels"] == {
        "team": "infra", "severity": "critical", "component": "gpu", "gpu_action": "reboot"
    }  # fmt: skip


def test_runbooks_lead_to_where_the_site_publishes_them() -> None:
    alert_rule = rule({"alerts": {"runbooks": "https://wiki.site/gpu/"}}, "GPULost")
    assert alert_rule is not None
    assert alert_rule["annotations"]["runbook_url"] == "https://wiki.site/gpu/GPULost.md"


def test_what_the_settings_make_no_use_of_is_left_out() -> None:
    assert rule({}, "GPUMemoryNearFull") is None
    assert rule({"monitoring": {"control_plane_targets": False}}, "EtcdNotMonitored") is None
    assert rule({}, "EtcdNotMonitored") is not None


def test_the_inventory_promises_gpus() -> None:
    groups = rules.groups(settings.parse_settings({}), NODES)
    expected = {
        r["labels"]["node"]: r["expr"]
        for group in groups for r in group["rules"] if r.get("record") == "node:gpu_expected:count"
    }  # fmt: skip
    assert expected == {"gpu1": "vector(2)", "gpu2": "vector(4)"}


def test_other_rules_have_another_digest() -> None:
    def digest(data: dict[str, Any]) -> str:
        return rules.digest(rules.groups(settings.parse_settings(data), NODES))

    for over in ({"threshold": 31}, {"hold_for": "1h"}, {"severity": "info"}):
        assert digest({"alerts": {"rules": {"GPUPcieReplay": over}}}) != digest({})
    assert digest({}) == digest({})


def test_the_object_is_marked_as_ours() -> None:
    manifest = rules.prometheus_rule(settings.parse_settings({}), NODES)
    assert manifest["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpuboot"}
    assert manifest["metadata"]["namespace"] == "monitoring"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"alerts": {"rules": {"GPULosst": {}}}}, "did you mean GPULost?"),
        ({"alerts": {"rules": {"GPULost": {"threshold": 2}}}}, "alerts.rules.GPULost.threshold"),
        ({"alerts": {"rules": {"x": {}}}}, "docs/runbooks lists every alert"),
        ({"alerts": {"labels": {"node": "a"}}}, "'node' cannot be a label"),
        ({"alerts": {"labels": {"a-b": "a"}}}, "'a-b' cannot be a label"),
        ({"exporter": {"scrape_interval": "5m"}}, "exporter.scrape_interval: 5m is too slow"),
        (
            {"versions": {"images": {"dcgm_exporter": "4.5.3-4.8.2-distroless"}}},
            "which lacks DCGM_EXP_XID_ERRORS_TOTAL",
        ),
    ],
)
def test_a_mistake_is_named_before_anything_is_touched(data: dict[str, Any], message: str) -> None:
    with pytest.raises(settings.SettingsError) as error:
        load(data)
    assert message in str(error.value)


def test_an_exporter_with_a_name_of_its_own_is_left_to_its_owner() -> None:
    data = {"versions": {"images": {"dcgm_exporter": "our-build-17"}}}
    assert load(data)[1].images.dcgm_exporter == "our-build-17"


def test_idle_takes_enough_samples_whatever_the_interval() -> None:
    for interval, needed in (("15s", 192), ("30s", 96), ("1m", 48)):
        data = {"exporter": {"scrape_interval": interval}}
        (record,) = (
            r for r in rules.recordings(settings.parse_settings(data), ())["gpus"]
            if r.name == "gpu:engine_active:max1h"
        )  # fmt: skip
        assert f">= {needed}" in record.expr


def test_names_are_quoted_for_promql() -> None:
    assert quoted('a"b\\c') == '"a\\"b\\\\c"'


def test_the_commands_print_rules_and_hold_runbooks_to_the_tables(tmp_path: Any) -> None:
    result = CliRunner().invoke(app, ["docs", "rules"])
    assert {group["name"] for group in yaml.safe_load(result.stdout)["groups"]} >= {"gpuboot-xid"}
    folder = tmp_path / "runbooks"
    assert CliRunner().invoke(app, ["docs", "runbooks", str(folder)]).exit_code == 0
    assert CliRunner().invoke(app, ["docs", "runbooks", "--check", str(folder)]).exit_code == 0
    (folder / "GPULost.md").write_text("old")
    (folder / "GPUGone.md").write_text("of no alert")
    assert runbook_pages.outdated(folder) == ["GPUGone.md", "GPULost.md"]
    checked = CliRunner().invoke(app, ["docs", "runbooks", "--check", str(folder)])
    assert checked.exit_code == 1
    runbook_pages.write(folder)
    assert runbook_pages.outdated(folder) == []
