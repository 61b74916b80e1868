"""How the exporter is scraped: labels, pod labels, one ServiceMonitor."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuboot.config.settings import Settings, SettingsError, parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from lab.charts.schema import json_schema
from tests.unit.test_charts import unknown

LABELS = {"pod_labels": ["team", r"app\.kubernetes\.io/name"]}
SITES: list[dict[str, Any]] = [{}, {"kind": "chart"}]


def exporter_with(exporter: dict[str, Any]) -> dict[str, Any]:
    settings = parse_settings({"exporter": exporter})
    return exporter_values(settings, lock(settings))


def operated(exporter: dict[str, Any]) -> dict[str, Any]:
    settings = parse_settings({"exporter": exporter})
    values: dict[str, Any] = operator_values(settings, lock(settings))["dcgmExporter"]
    return values


def chart_monitors(settings: Settings) -> list[bool]:
    version_lock = lock(settings)
    all_values = [operator_values(settings, version_lock)["dcgmExporter"]]
    if settings.exporter.kind == "chart":
        all_values.append(exporter_values(settings, version_lock))
    return [values["serviceMonitor"]["enabled"] for values in all_values]


@pytest.mark.parametrize("exporter", SITES)
@pytest.mark.parametrize("watched", [True, False])
def test_exactly_one_service_monitor_or_none(exporter: dict[str, Any], watched: bool) -> None:
    settings = parse_settings({"exporter": exporter, "monitoring": {"enabled": watched}})
    assert sum(chart_monitors(settings)) == (1 if watched else 0)


@pytest.mark.parametrize("exporter", [*SITES, {**LABELS}, {**LABELS, "kind": "chart"}])
def test_every_key_is_one_the_chart_has(exporter: dict[str, Any]) -> None:
    settings = parse_settings({"exporter": exporter})
    values = {
        "dcgm-exporter": exporter_values(settings, lock(settings)),
        "gpu-operator": operator_values(settings, lock(settings)),
    }
    for name, chart_values in values.items():
        assert list(unknown(chart_values, json_schema(name))) == []


def test_nothing_drops_a_label_that_names_a_gpu() -> None:
    rules = operated({})["serviceMonitor"]["relabelings"]
    dropped = [rule["regex"] for rule in rules if rule["action"] == "labeldrop"]
    assert dropped
    for label in ("UUID", "gpu", "device", "modelName", "GPU_I_ID", "GPU_I_PROFILE", "vgpu"):
        assert not any(re.fullmatch(regex, label) for regex in dropped)
    assert all(re.fullmatch(dropped[0], label) for label in ("pod", "namespace", "container"))


def test_pod_labels_are_anchored_and_bring_their_rights() -> None:
    expected = ["^(?:team)$", r"^(?:app\.kubernetes\.io/name)$"]
    standalone = exporter_with({**LABELS, "kind": "chart"})["kubernetes"]
    assert standalone["podLabelAllowlistRegex"] == expected
    assert standalone["enablePodLabels"] is True
    assert standalone["rbac"] == {"create": True}
    under = operated(LABELS)
    assert under["enablePodLabels"] is True
    assert under["podLabelAllowlistRegex"] == expected


def test_without_pod_labels_the_exporter_may_not_read_pods() -> None:
    assert "kubernetes" not in exporter_with({"kind": "chart"})
    assert "enablePodLabels" not in operated({})


def test_privileges_of_the_stand_alone_exporter() -> None:
    values = exporter_with({"kind": "chart"})
    assert values["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert values["securityContext"]["allowPrivilegeEscalation"] is False
    assert (values["hostNetwork"], values["hostPID"]) == (False, False)


def test_memory_is_limited_on_either_path() -> None:
    for values in (exporter_with({"kind": "chart"}), operated({})):
        assert values["resources"]["limits"]["memory"] == "1Gi"


@pytest.mark.parametrize(
    ("exporter", "cause"),
    [
        ({"pod_labels": ["a,b"]}, "it is for the whole name"),  # the exporter splits at commas
        ({"pod_labels": ["(?!secret).*"]}, "it is for the whole name"),  # Go has no look-ahead
        ({"pod_labels": ["a{2}"]}, "it is for the whole name"),
        ({"pod_labels": ["team("]}, "no regular expression"),
        ({"counters": ["DCGM_FI_DEV_FAN_SPEED"], "collectors_file": "own.csv"}, "replaces it"),
    ],
)
def test_what_cannot_work_is_refused(exporter: dict[str, Any], cause: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings({"exporter": exporter})
    assert cause in str(error.value)
