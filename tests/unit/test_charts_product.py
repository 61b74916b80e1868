"""The values the deploys write, rendered with the charts: every key known, every wish granted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gpuboot import telemetry
from gpuboot.config import settings, versions
from gpuboot.monitoring.charts.exporter import exporter_values
from gpuboot.monitoring.charts.gpu_operator_values import COLLECTORS_MAP, operator_values
from gpuboot.monitoring.charts.monitoring_values import STACK, monitoring_values
from gpuboot.telemetry.collectors import COLLECTORS_ANNOTATION
from lab.charts import assemble as charts
from lab.charts.render import Object, find, helm_binary, names, render

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: charts are completed from Go modules", allow_module_level=True)

SITES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "time slices": {"gpu_operator": {"time_slices": 4}},
    "shared": {
        "sharing": {"dev": {"time_slices": 4}, "gpu1": {"mig": "half"}},
        "mig_layouts": {"half": [{"instances": {"3g.40gb": 2}}]},
    },
    "own exporter": {"exporter": {"kind": "chart"}, "runtime": {"mode": "runtimeclass"}},
    "no grafana": {"monitoring": {"grafana": False, "node_ports": {"prometheus": 30090}}},
    "kept, shown and sent on": {
        "monitoring": {
            "node_ports": {"alertmanager": 30903, "grafana": 32322},
            "storage": {"class_name": "fast"},
            "remote_write": [
                {
                    "url": "https://mimir.example.org/api/v1/push",
                    "bearer_token": {"secret": "mimir/token"},
                    "only": "gpu",
                }
            ],
        }
    },
    "own control plane": {"monitoring": {"control_plane_targets": False}},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("charts")
    return {name: charts.assemble(name, out) for name in charts.CHARTS}


def site(folders: dict[str, Path], chart: str, data: dict[str, Any]) -> list[Object]:
    site_settings = settings.parse_settings(data)
    lock = versions.lock(site_settings)
    chart_values = {
        "gpu-operator": lambda: operator_values(site_settings, lock),
        "dcgm-exporter": lambda: exporter_values(site_settings, lock),
        "kube-prometheus-stack": lambda: monitoring_values(site_settings),
    }[chart]()
    api = ["monitoring.coreos.com/v1/ServiceMonitor"]
    return render(folders[chart], chart, "lab", chart_values, api)


@pytest.mark.parametrize("data", SITES.values(), ids=SITES)
@pytest.mark.parametrize("chart", charts.CHARTS)
def test_values_are_accepted(folders: dict[str, Path], chart: str, data: dict[str, Any]) -> None:
    assert names(site(folders, chart, data), "ServiceMonitor")


def test_lock_and_stand_ins_agree(folders: dict[str, Path]) -> None:
    lock = versions.lock(settings.parse_settings({}))
    locked = {name: chart.version for name, chart in lock.charts.items() if name != "fluent-bit"}
    assert locked == {name: charts.chart_version(folder) for name, folder in folders.items()}


def test_operated_exporter_reads_our_counters(folders: dict[str, Path]) -> None:
    objects = site(folders, "gpu-operator", {})
    counters = find(objects, "ConfigMap", COLLECTORS_MAP)["data"]["dcgm-metrics.csv"]
    assert counters.rstrip() == telemetry.collectors(settings.parse_settings({}).exporter).rstrip()
    monitor = find(objects, "ServiceMonitor", "nvidia-dcgm-exporter")
    targets = [r.get("targetLabel") for r in monitor["spec"]["endpoints"][0]["relabelings"]]
    assert targets == ["node", "instance", None]


@pytest.mark.parametrize("name", ["nvidia-device-plugin-daemonset", "gpu-feature-discovery"])
def test_another_number_of_time_slices_renews_the_pods(folders: dict[str, Path], name: str) -> None:
    """config-manager notices nothing else (k8s-device-plugin v0.20.0, cmd/config-manager)."""
    pods = [
        find(
            site(folders, "gpu-operator", {"gpu_operator": {"time_slices": slices}}),
            "DaemonSet",
            name,
        )["spec"]["template"]
        for slices in (1, 2, 4)
    ]
    assert pods[0] != pods[1] != pods[2]


@pytest.mark.parametrize(
    ("chart", "kind"), [("gpu-operator", "operator"), ("dcgm-exporter", "chart")]
)
def test_only_our_note_starts_the_exporter_anew(
    folders: dict[str, Path], chart: str, kind: str
) -> None:
    """The list is mounted by subPath, without a checksum, as upstream does (gpu-operator v26.7.0
    controllers/object_controls.go:1902; dcgm-exporter's chart 4.8.4 templates/daemonset.yaml)."""
    old, new = (
        _exporter(site(folders, chart, {"exporter": {"kind": kind, "counters": fields}}))
        for fields in ([], ["DCGM_FI_DEV_FB_TOTAL"])
    )
    assert old["metadata"]["annotations"].pop(COLLECTORS_ANNOTATION) != new["metadata"][
        "annotations"
    ].pop(COLLECTORS_ANNOTATION)
    assert old == new
    mounts = [mount for c in new["spec"]["containers"] for mount in c["volumeMounts"]]
    assert [mount["subPath"] for mount in mounts if "metrics" in mount["name"]]


def _exporter(objects: list[Object]) -> dict[str, Any]:
    """The template of the exporter's pods."""
    [pods] = [
        item["spec"]["template"]
        for item in objects
        if item["kind"] == "DaemonSet" and "dcgm-exporter" in item["metadata"]["name"]
    ]
    return dict(pods)


@pytest.mark.parametrize(
    ("chart", "kind"), [("gpu-operator", "operator"), ("dcgm-exporter", "chart")]
)
def test_an_engine_of_the_node_is_reached(folders: dict[str, Path], chart: str, kind: str) -> None:
    """docs/settings.md promises it of `dcgm`."""
    objects = site(folders, chart, {"exporter": {"kind": kind}, "dcgm": "host"})
    [pod] = [
        o["spec"]["template"]["spec"]
        for o in objects
        if o["kind"] == "DaemonSet" and "dcgm-exporter" in o["metadata"]["name"]
    ]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_prometheus_selects_the_exporters_monitor(folders: dict[str, Path]) -> None:
    stack = site(folders, "kube-prometheus-stack", {})
    [prometheus] = [o for o in stack if o["kind"] == "Prometheus"]
    assert prometheus["spec"]["serviceMonitorSelector"] == {}
    assert prometheus["spec"]["ruleSelector"] == {}
    assert prometheus["metadata"]["name"] == f"{STACK}-prometheus"
