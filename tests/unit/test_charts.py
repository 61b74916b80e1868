"""The charts' values: only keys that the charts read, and what the settings ask for."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deploys.phases.runtime import MODES
from gpuboot.cluster.values import changed_keys
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.chart_repositories import repository
from gpuboot.monitoring.charts.exporter import exporter_values, needs_runtime_class
from gpuboot.monitoring.charts.gpu_operator_values import expected_gpus, operands, operator_values
from gpuboot.monitoring.charts.monitoring_values import (
    GRAFANA_SECRET,
    monitoring_values,
    monitoring_workloads,
)
from gpuboot.telemetry import parse_collectors
from lab.charts.schema import json_schema

ALL_OPTIONS = {
    "exporter": {
        "arguments": ["--debug"],
        "counters": ["DCGM_FI_PROF_SM_ACTIVE"],
    },
    "dcgm": "host",
    "gpu_operator": {"time_slices": 4},
    "monitoring": {"node_ports": {"prometheus": 30090, "grafana": 32322}},
    "runtime": {"mode": "runtimeclass"},
}
SOME = [{}, ALL_OPTIONS, {"monitoring": {"control_plane_targets": False, "grafana": False}}]


def unknown(values: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Keys of `values` that a closed map of the chart's schema does not have, or of wrong type."""
    expected_type = schema.get("type")
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    allowed = [expected_type] if isinstance(expected_type, str) else expected_type
    if allowed and not isinstance(values, tuple(kinds[kind] for kind in allowed)):
        yield f"{path} is {type(values).__name__}, not {expected_type}"
    if not isinstance(values, dict) or schema.get("additionalProperties") is not False:
        return
    for key, value in values.items():
        if key not in schema["properties"]:
            yield f"{path}/{key}"
        else:
            yield from unknown(value, schema["properties"][key], f"{path}/{key}")


def test_the_walker_finds_what_is_wrong() -> None:
    schema = json_schema("gpu-operator")
    wrong_values = {"driver": {"enabled": "no"}, "operator": {"defaultRuntime": "docker"}}
    assert list(unknown(wrong_values, schema)) == [
        "/driver/enabled is str, not boolean",
        "/operator/defaultRuntime",
    ]


@pytest.mark.parametrize("data", SOME)
def test_every_key_is_one_the_chart_has(data: dict[str, Any]) -> None:
    settings = parse_settings(data)
    version_lock = lock(settings)
    for name, values in (
        ("gpu-operator", operator_values(settings, version_lock)),
        ("kube-prometheus-stack", monitoring_values(settings)),
        ("dcgm-exporter", exporter_values(settings, version_lock)),
    ):
        assert list(unknown(values, json_schema(name))) == []


def test_operator_leaves_driver_and_toolkit_to_the_host() -> None:
    values = operator_values(Settings(), lock(Settings()))
    assert values["driver"] == {"enabled": False}
    assert values["toolkit"] == {"enabled": False}


def test_exporter_under_the_operator() -> None:
    settings = parse_settings(ALL_OPTIONS)
    exporter = operator_values(settings, lock(settings))["dcgmExporter"]
    environment = {item["name"]: item["value"] for item in exporter["env"]}
    assert environment == {
        "DCGM_EXPORTER_INTERVAL": "15000",
        "DCGM_REMOTE_HOSTENGINE_INFO": "localhost:5555",
        "KUBERNETES_VIRTUAL_GPUS": "true",
    }
    assert exporter["args"] == ["--debug"]
    assert "DCGM_FI_PROF_SM_ACTIVE" in parse_collectors(exporter["config"]["data"])


def test_series_are_named_after_node_and_workload() -> None:
    monitor = operator_values(Settings(), lock(Settings()))["dcgmExporter"]["serviceMonitor"]
    assert monitor["honorLabels"] is False
    actions = {item.get("targetLabel", item.get("regex")): item for item in monitor["relabelings"]}
    assert actions["node"]["sourceLabels"] == ["__meta_kubernetes_pod_node_name"]
    assert actions["pod|namespace|container|service|endpoint"]["action"] == "labeldrop"


def test_exactly_one_exporter_and_service_monitor() -> None:
    settings = parse_settings({"exporter": {"kind": "chart"}})
    version_lock = lock(settings)
    operated = operator_values(settings, version_lock)["dcgmExporter"]
    standalone = exporter_values(settings, version_lock)
    assert operated == {"enabled": False, "serviceMonitor": {"enabled": False}}
    assert standalone["serviceMonitor"]["enabled"] is True


def test_without_monitoring_there_is_no_service_monitor() -> None:
    settings = parse_settings({"monitoring": {"enabled": False}})
    exporter = operator_values(settings, lock(settings))["dcgmExporter"]
    assert exporter["serviceMonitor"]["enabled"] is False


def test_time_slices() -> None:
    settings = parse_settings({"gpu_operator": {"time_slices": 4}})
    config = operator_values(settings, lock(settings))["devicePlugin"]["config"]
    shared = yaml.safe_load(config["data"][config["default"]])["sharing"]["timeSlicing"]
    assert shared["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    nodes = (
        Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True),
        Node("h2", "gpu1", "10.0.0.2", "worker", 2, False),
    )
    assert expected_gpus(nodes, settings, {})["gpu1"].resources == {"nvidia.com/gpu": 8}


def test_each_content_of_the_plugins_configuration_has_a_name_of_its_own() -> None:
    """k8s-device-plugin v0.20.0, cmd/config-manager/main.go:273-279: only the node's label counts.

    So a content that changes under its old name is never read; the operator puts the name into
    the pods (gpu-operator v26.7.0, controllers/object_controls.go:2893, 2929), which renews them.
    """
    configurations: list[dict[str, Any]] = [
        {"gpu_operator": {"time_slices": 4}},
        {"gpu_operator": {"time_slices": 2}},
        {"gpu_operator": {"time_slices": 4, "mig_strategy": "mixed"}},
    ]
    names = set()
    for data in configurations:
        config = operator_values(parse_settings(data), lock(Settings()))["devicePlugin"]["config"]
        assert list(config["data"]) == [config["default"]]
        names.add(config["default"])
    assert len(names) == len(configurations)
    repeated = operator_values(parse_settings(configurations[0]), lock(Settings()))["devicePlugin"][
        "config"
    ]
    assert repeated["default"] in names


@pytest.mark.parametrize("mode", ["runtimeclass", "cdi"])
def test_the_charts_exporter_gets_its_gpus_by_a_runtime_class(mode: str) -> None:
    """A pod's annotations never reach its containers, whose own and CDI fields containerd reads.

    containerd v2, internal/cri/server/container_create_linux.go:103; the image asks the runtime
    for all GPUs (dcgm-exporter 4.8.2, docker/Dockerfile:165, NVIDIA_VISIBLE_DEVICES=all).
    """
    data = {"exporter": {"kind": "chart"}, "gpu_operator": {"enabled": False}}
    standalone = parse_settings({**data, "runtime": {"mode": mode}})
    values = exporter_values(standalone, lock(standalone))
    assert values["runtimeClassName"] == "nvidia"
    assert not any("cdi" in key for key in values.get("podAnnotations", {}))
    assert needs_runtime_class(standalone)
    assert MODES[mode] == ""  # containerd has the handler nvidia, and not as its default
    assert not needs_runtime_class(parse_settings(data))


def test_the_operator_makes_its_runtime_class_itself() -> None:
    settings = parse_settings({"exporter": {"kind": "chart"}, "runtime": {"mode": "runtimeclass"}})
    assert not needs_runtime_class(settings)


@pytest.mark.parametrize(("dcgm", "host"), [("host", True), ("embedded", False)])
def test_an_engine_on_the_nodes_loopback_needs_the_hosts_network(dcgm: str, host: bool) -> None:
    """The operator looks for it too early (v26.7.0, controllers/object_controls.go:1833, 1936)."""
    settings = parse_settings({"dcgm": dcgm})
    operated = operator_values(settings, lock(settings))["dcgmExporter"]
    assert operated.get("hostNetwork", False) is host
    assert exporter_values(settings, lock(settings))["hostNetwork"] is host


def test_monitoring_selects_everything_and_keeps_no_password() -> None:
    values = monitoring_values(parse_settings({"grafana_password": "hunter2"}))
    spec = values["prometheus"]["prometheusSpec"]
    assert [value for key, value in spec.items() if key.endswith("NilUsesHelmValues")] == [
        False
    ] * 5
    assert "hunter2" not in str(values)
    assert values["grafana"]["admin"]["existingSecret"] == GRAFANA_SECRET


def test_the_sites_values_win() -> None:
    settings = parse_settings(
        {"monitoring": {"values": {"prometheus": {"prometheusSpec": {"replicas": 2}}}}}
    )
    spec = monitoring_values(settings)["prometheus"]["prometheusSpec"]
    assert spec["replicas"] == 2
    assert spec["retention"] == "15d"


def test_repositories() -> None:
    assert repository("nvidia", Settings()) == "https://helm.ngc.nvidia.com/nvidia"
    mirrored = parse_settings({"mirrors": {"charts": {"nvidia": "https://mirror.example/n"}}})
    assert repository("nvidia", mirrored) == "https://mirror.example/n"
    with pytest.raises(ValueError, match="unknown chart repository bitnami"):
        repository("bitnami", Settings())


def test_changed_keys_name_paths_without_values() -> None:
    old = {"a": {"b": 1, "c": [1]}, "gone": "secret"}
    new = {"a": {"b": 2, "c": [1]}, "new": {"x": 1}}
    assert changed_keys(old, new) == ["a.b", "gone", "new"]
    assert changed_keys(new, dict(new)) == []


def test_what_must_run_follows_the_values() -> None:
    settings = parse_settings(
        {"exporter": {"kind": "chart"}, "gpu_operator": {"values": {"gfd": {"enabled": False}}}}
    )
    assert operands(settings, lock(settings), 2) == {
        "gpu-operator": 1,
        "nvidia-operator-validator": 2,
        "nvidia-device-plugin-daemonset": 2,
    }
    assert operands(settings, lock(settings), 0) == {"gpu-operator": 1}
    assert len(monitoring_workloads(Settings())) == 3
    without_alertmanager = parse_settings(
        {"monitoring": {"values": {"alertmanager": {"enabled": False}}}}
    )
    assert monitoring_workloads(without_alertmanager) == [
        "kube-prometheus-stack-operator",
        "prometheus-kube-prometheus-stack-prometheus",
    ]
