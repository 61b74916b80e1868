"""Alertmanager's part of the chart's values, rendered: what arrives is what was meant."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuboot.config import settings
from gpuboot.monitoring import alerting
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from lab.charts import assemble
from lab.charts.render import Object, find, helm_binary, render
from tests.routing.programs import amtool

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: charts are completed from Go modules", allow_module_level=True)

STACK = "kube-prometheus-stack"
FILE = {"file": "/etc/secrets/x"}
ALL_RECEIVERS: dict[str, Any] = {
    "pagerduty": {"routing_key": FILE},
    "slack": {"webhook": {"secret": "team/url"}, "channel": "#gpu"},
    "email": {"to": ["a@example.com"], "sender": "b@example.com", "smarthost": "mx:587"},
    "ca_file": "/etc/secrets/ca.crt",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble.assemble(STACK, tmp_path_factory.mktemp("charts"))


def rendered(folder: Path, data: dict[str, Any]) -> tuple[Object, Object]:
    """The Alertmanager object and the Secret with its configuration."""
    values = monitoring_values(settings.parse_settings({"alertmanager": data}))
    objects = render(
        folder, STACK, "monitoring", values, ["monitoring.coreos.com/v1/ServiceMonitor"]
    )
    return (
        find(objects, "Alertmanager", f"{STACK}-alertmanager"),
        find(objects, "Secret", f"alertmanager-{STACK}-alertmanager"),
    )


def test_configuration_and_texts_pass_through_helm_untouched(folder: Path, tmp_path: Path) -> None:
    alertmanager, secret = rendered(folder, ALL_RECEIVERS)
    texts = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    values = alerting.alertmanager_values(settings.parse_settings({"alertmanager": ALL_RECEIVERS}))
    config = tmp_path / "alertmanager.yaml"
    config.write_text(texts.pop("alertmanager.yaml"))
    assert yaml.safe_load(config.read_text()) == values["config"]
    assert texts == alerting.templates()
    assert alertmanager["spec"]["secrets"] == ["gpuboot-alertmanager", "team"]
    assert "SUCCESS" in amtool("check-config", config)


def test_without_receivers_nothing_of_the_charts_own_is_left(folder: Path) -> None:
    alertmanager, secret = rendered(folder, {})
    config = yaml.safe_load(base64.b64decode(secret["data"]["alertmanager.yaml"]))
    assert config["receivers"] == [{"name": "null"}]
    assert config["route"]["group_by"] == ["alertname", "cluster", "node"]
    assert "secrets" not in alertmanager["spec"]
