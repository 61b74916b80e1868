"""When the GPU Operator has carried changed values out, and when it only has not looked yet."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster import readiness
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.operands import Operand
from gpuboot.cluster.workloads import Workload
from gpuboot.config.settings import parse_settings
from gpuboot.config.versions import lock
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.operator_daemonsets import expected_operands
from lab.charts import assemble
from lab.charts.render import Object, helm_binary, render

if helm_binary() is None or shutil.which("go") is None:
    pytest.skip("no helm or no go: charts are completed from Go modules", allow_module_level=True)

OLD: dict[str, Any] = {}
NEW: dict[str, dict[str, Any]] = {
    "the exporter's version": {"versions": {"images": {"dcgm_exporter": "4.9.0-4.9.0-distroless"}}},
    "its interval": {"exporter": {"scrape_interval": "5s"}},
    "its arguments": {"exporter": {"arguments": ["--debug"]}},
    "its collectors": {"exporter": {"counters": ["DCGM_FI_DEV_FB_TOTAL"]}},
    "the host's network": {"dcgm": "host"},
    "MIG strategy": {"gpu_operator": {"mig_strategy": "mixed"}},
    "time slices": {"gpu_operator": {"time_slices": 4}},
    "tolerations": {
        "gpu_operator": {
            "values": {"daemonsets": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
        }
    },
}


# a site's own, whose way back to the chart's default leaves nothing to look for
OPERAND_SETTINGS: dict[str, dict[str, Any]] = {
    "the plugin's version": {"devicePlugin": {"version": "v0.20.1"}},
    "resources": {"gfd": {"resources": {"limits": {"cpu": "1000m"}}}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble.assemble("gpu-operator", tmp_path_factory.mktemp("charts"))


def state(folder: Path, data: dict[str, Any]) -> ClusterState:
    """What the cluster holds once the operator has carried the values out, and says so."""
    settings = parse_settings(data)
    values = operator_values(settings, lock(settings))
    objects = [_as_stored(o) for o in render(folder, "gpu-operator", "gpu-operator", values)]
    operands = tuple(
        Operand(
            "gpu-operator",
            o["metadata"]["name"],
            o["metadata"]["labels"]["helm.sh/chart"],
            o["spec"]["template"],
        )
        for o in objects
        if o["kind"] == "DaemonSet" and o["metadata"]["labels"].get("app") == o["metadata"]["name"]
    )
    assert len(operands) == 5
    return ClusterState(policy="ready", operands=operands)


def _as_stored(item: Object) -> Object:
    """As the API server keeps it: 1000m of CPU are 1."""
    item = copy.deepcopy(item)
    containers = item.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
    for container in containers:
        limits = container.get("resources", {}).get("limits", {})
        limits |= {name: "1" for name, amount in limits.items() if amount == "1000m"}
    return item


def look(cluster_state: ClusterState, data: dict[str, Any]) -> readiness.Progress:
    settings = parse_settings(data)
    expected = expected_operands(settings, lock(settings))
    return readiness.operands_current(cluster_state, "gpu-operator", expected)


@pytest.mark.parametrize("data", NEW.values(), ids=NEW)
def test_ready_is_not_believed_before_the_values_are_there(
    folder: Path, data: dict[str, Any]
) -> None:
    """gpu-operator v26.7.0, controllers/clusterpolicy_controller.go:313: no observedGeneration."""
    before, after = state(folder, OLD), state(folder, data)
    assert readiness.policy_ready(before).complete
    assert not look(before, data).complete
    assert look(after, data).complete
    # and back again: what the old values do not have must be gone
    assert not look(after, OLD).complete
    assert look(before, OLD).complete


@pytest.mark.parametrize("values", OPERAND_SETTINGS.values(), ids=OPERAND_SETTINGS)
def test_a_sites_own_values_are_waited_for(folder: Path, values: dict[str, Any]) -> None:
    data = {"gpu_operator": {"values": values}}
    assert not look(state(folder, OLD), data).complete
    assert look(state(folder, data), data).complete


def test_operands_of_another_chart_version_are_not_current(folder: Path) -> None:
    data = {"versions": {"charts": {"gpu-operator": {"version": "v26.7.1"}}}}
    progress = look(state(folder, OLD), data)
    assert not progress.complete
    assert "chart gpu-operator-v26.7.1" in progress.text


def test_what_is_missing_is_named(folder: Path) -> None:
    progress = look(state(folder, OLD), {"gpu_operator": {"time_slices": 4}})
    assert progress.text.startswith("1 of 4 operands are as the values have them; not yet: ")
    assert "nvidia-device-plugin-daemonset (configuration time-slices-4-" in progress.text
    assert "nvidia-dcgm-exporter (KUBERNETES_VIRTUAL_GPUS)" in progress.text


def test_operands_that_are_turned_off_or_not_made_are_not_waited_for(folder: Path) -> None:
    off = {"exporter": {"kind": "chart"}, "gpu_operator": {"values": {"gfd": {"enabled": False}}}}
    settings = parse_settings(off)
    assert set(expected_operands(settings, lock(settings))) == {
        "nvidia-device-plugin-daemonset",
        "nvidia-operator-validator",
    }
    assert look(ClusterState(), OLD).complete


def test_an_engine_of_the_operators_own_is_no_difference(folder: Path) -> None:
    """gpu-operator v26.7.0, controllers/object_controls.go:1829: dcgm.enabled names its Service."""
    data = {"gpu_operator": {"values": {"dcgm": {"enabled": True}, "mig": {"strategy": ""}}}}
    settings = parse_settings(data)
    expected = expected_operands(settings, lock(settings))
    assert "DCGM_REMOTE_HOSTENGINE_INFO" not in expected["nvidia-dcgm-exporter"].env
    assert expected["gpu-feature-discovery"].env == {"MIG_STRATEGY": None}


def test_an_operand_that_was_not_read_is_not_taken_for_current(folder: Path) -> None:
    cluster_state = state(folder, OLD)
    workloads = tuple(
        Workload("DaemonSet", item.namespace, item.name, 1, 1, True, "")
        for item in cluster_state.operands
    )
    assert look(replace(cluster_state, workloads=workloads), OLD).complete
    unread = look(
        replace(cluster_state, workloads=workloads, operands=cluster_state.operands[1:]), OLD
    )
    assert not unread.complete
    assert "not read" in unread.text
