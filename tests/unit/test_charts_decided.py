"""Chart values of a site that contradict what gpuboot decides are refused, with one problem."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.config.problems import Problem
from gpuboot.config.settings import SettingsError
from gpuboot.monitoring.charts.exporter import tolerations
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.site.load_site import load

HALF = {"half": [{"instances": {"3g.40gb": 2}}]}


def refusals(data: dict[str, Any]) -> list[Problem]:
    try:
        load(data)
    except SettingsError as error:
        return error.problems
    return []


def operator(values: dict[str, Any], **fields: Any) -> dict[str, Any]:
    of_operator = fields.pop("gpu_operator", {})
    return {"gpu_operator": {**of_operator, "values": values}, **fields}


def stack(spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"monitoring": {**fields, "values": {"prometheus": {"prometheusSpec": spec}}}}


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (operator({"driver": {"enabled": True}}), "driver.enabled"),
        (operator({"driver": None}), "driver.enabled"),
        (operator({"toolkit": {"enabled": "true"}}), "toolkit.enabled"),
        (
            operator({"driver": {"enabled": True}, "toolkit": {"enabled": True}}),
            "driver.enabled, toolkit.enabled",
        ),
        (operator({"gpuCluster": {"deployCR": True}}), "gpuCluster.deployCR"),
        (operator({"clusterPolicy": {"deployCR": False}}), "clusterPolicy.deployCR"),
        (operator({"operator": {"defaultRuntime": "docker"}}), "operator.defaultRuntime"),
        (operator({"cdi": {"enabled": False}}), "cdi.enabled"),
        (operator({"sandboxWorkloads": {"enabled": True}}), "sandboxWorkloads.enabled"),
        (operator({"mig": {"strategy": "mixed"}}), "mig.strategy"),
        (operator({"migManager": {"enabled": False}}), "migManager.enabled"),
        (
            operator(
                {"migManager": {"config": {"name": "mine"}}},
                gpu_operator={"mig_strategy": "mixed"}, sharing={"a": {"mig": "half"}},
                mig_layouts=HALF,
            ),
            "migManager.config",
        ),
        (operator({"devicePlugin": {"enabled": False}}), "devicePlugin.enabled"),
        (
            operator({"devicePlugin": {"config": {"name": "mine"}}}, sharing={"a": {"mps": 2}}),
            "devicePlugin.config",
        ),
        (operator({"dcgmExporter": {"enabled": True}}, exporter={"kind": "chart"}),
         "dcgmExporter.enabled"),
        (operator({"dcgmExporter": {"env": [{"name": "HTTP_PROXY", "value": "x"}]}}),
         "dcgmExporter.env"),
        (operator({"daemonsets": {"tolerations": []}}, gate={"enabled": True}),
         "daemonsets.tolerations"),
        ({"monitoring": {"values": {"prometheus": {"enabled": False}}}}, "prometheus.enabled"),
        (stack({"scrapeInterval": "2m"}), "prometheus.prometheusSpec.scrapeInterval"),
        (stack({"externalLabels": {"cluster": "b"}}),
         "prometheus.prometheusSpec.externalLabels.cluster"),
        (stack({"ruleSelectorNilUsesHelmValues": True}),
         "prometheus.prometheusSpec.ruleSelectorNilUsesHelmValues"),
        ({"monitoring": {"values": {"grafana": {"enabled": False}}}}, "grafana.enabled"),
        ({"monitoring": {"values": {"grafana": {"admin": {"existingSecret": "x"}}}}},
         "grafana.admin"),
    ],
)  # fmt: skip
def test_what_contradicts_is_one_problem_that_names_the_keys(
    data: dict[str, Any], keys: str
) -> None:
    [problem] = refusals(data)
    setting = "monitoring.values" if "values" in data.get("monitoring", {}) else None
    expected = setting or "gpu_operator.values"
    assert problem.cause == f"{expected} says otherwise than gpuboot decides: {keys}"
    for key in keys.split(", "):
        assert f"{key}: " in problem.remedy


def test_what_the_site_gives_is_not_repeated() -> None:
    """Values may hold credentials."""
    data = operator({"driver": {"enabled": "hunter2"}, "toolkit": {"enabled": {"a": "hunter2"}}})
    assert "hunter2" not in str(refusals(data))


@pytest.mark.parametrize(
    "data",
    [
        operator({"driver": {"enabled": False}, "toolkit": {"enabled": False}}),
        operator({"driver": {"version": "x"}, "operator": {"defaultRuntime": "containerd"}}),
        operator({"gfd": {"enabled": False}, "dcgm": {"enabled": True}}),
        operator({"daemonsets": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
        operator({"mig": {"strategy": "mixed"}}, gpu_operator={"mig_strategy": "mixed"}),
        operator({"migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]}}),
        operator({"migManager": {"config": {"name": "mine"}}}),  # no layout of the settings
        operator({"devicePlugin": {"config": {"name": "mine"}}}),  # nothing is shared
        operator({"dcgmExporter": {"config": {"name": "site", "create": False}}}),
        operator({"driver": {"enabled": True}}, gpu_operator={"enabled": False},
                 exporter={"kind": "chart"}),
        {"monitoring": {"enabled": False, "values": {"grafana": {"enabled": False}}}},
        {"monitoring": {"grafana": False, "values": {"grafana": {"enabled": False}}}},
        {"monitoring": {"values": {"alertmanager": {"enabled": False}}}},
        stack({"replicas": 2, "externalLabels": {"site": "a"}}),
        stack({"scrapeInterval": "15s"}, scrape_interval="15s"),
    ],
)  # fmt: skip
def test_what_does_not_contradict(data: dict[str, Any]) -> None:
    assert refusals(data) == []


def test_lists_may_have_more_than_gpuboot_s_own() -> None:
    gate = {"enabled": True}
    settings, lock = load({"gate": gate})
    env = [*operator_values(settings, lock)["dcgmExporter"]["env"], {"name": "A", "value": "b"}]
    own_tolerations = [*tolerations(settings), {"key": "a", "operator": "Exists"}]
    values = {"dcgmExporter": {"env": env}, "daemonsets": {"tolerations": own_tolerations}}
    assert refusals(operator(values, gate=gate)) == []
