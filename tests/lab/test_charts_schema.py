"""The stand-in charts' schemas and how the charts are put together; no Helm needed."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.charts import assemble as charts
from lab.charts import schema
from lab.state import LabError


def lookup(tree: dict[str, Any], path: str) -> dict[str, Any] | None:
    """The schema at a dotted path; an open map's schema answers for everything below it."""
    node = tree
    for name in path.split("."):
        if node.get("properties") is None:
            return node if node.get("additionalProperties", True) else None
        if name not in node["properties"]:
            return None
        node = node["properties"][name]
    return node


@pytest.mark.parametrize(
    ("chart", "path", "expected"),
    [
        ("gpu-operator", "driver.enabled", "boolean"),
        ("gpu-operator", "dcgmExporter.config.data", "string"),
        ("gpu-operator", "operator.metrics.serviceMonitor.additionalLabels", "object"),
        ("gpu-operator", "operator.nodeSelector.whatever", "object"),
        ("gpu-operator", "node-feature-discovery.worker.config.sources.pci", "object"),
        ("gpu-operator", "daemonsets.rollingUpdate.maxUnavailable", ["string", "integer"]),
        ("dcgm-exporter", "arguments", "array"),
        ("dcgm-exporter", "service.webReadTimeout", "string"),
        ("kube-prometheus-stack", "prometheus.prometheusSpec.retention", "string"),
        ("kube-prometheus-stack", "prometheus.prometheusSpec.sampleLimit", ["boolean", "integer"]),
        ("kube-prometheus-stack", "alertmanager.config", ["object", "string"]),
        ("kube-prometheus-stack", "grafana.sidecar.dashboards.provider.orgid", "integer"),
        ("kube-prometheus-stack", "kube-state-metrics.metricLabelsAllowlist", "array"),
        ("kube-prometheus-stack", "prometheus-node-exporter.resources.limits", "object"),
    ],
)
def test_known_key_has_its_type(chart: str, path: str, expected: object) -> None:
    key_schema = lookup(schema.json_schema(chart), path)
    assert key_schema is not None
    assert key_schema["type"] == expected


@pytest.mark.parametrize(
    ("chart", "path"),
    [
        ("gpu-operator", "operator.defaultRuntime"),  # removed from the chart in v25.3.0
        ("gpu-operator", "psp.enabled"),
        ("gpu-operator", "dcgmExporter.serviceMonitor.metricRelabelings"),
        ("gpu-operator", "dcgmExporter.serviceMonitor.namespace"),
        ("dcgm-exporter", "livenessProbe.timeoutSeconds"),
        ("kube-prometheus-stack", "prometheus.prometheusSpec.serviceMonitorSelectorNilUsesHelm"),
        ("kube-prometheus-stack", "prometheusSpec"),
    ],
)
def test_key_that_upstream_does_not_have_is_refused(chart: str, path: str) -> None:
    assert lookup(schema.json_schema(chart), path) is None


@pytest.mark.parametrize("chart", charts.CHARTS)
def test_every_default_of_the_chart_is_a_key_of_upstream(chart: str) -> None:
    def paths(value: object, path: str) -> list[str]:
        if isinstance(value, dict) and value:
            return [p for k, v in value.items() for p in paths(v, f"{path}.{k}" if path else k)]
        return [path]

    values = yaml.safe_load((charts.CHARTS_DIR / chart / "values.yaml").read_text())
    tree = schema.json_schema(chart)
    assert [path for path in paths(values, "") if lookup(tree, path) is None] == []


def test_malformed_key_list_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.tsv").write_text("# title\na.b\tbool\na.c string\n")
    monkeypatch.setattr(schema, "KEYS", tmp_path)
    monkeypatch.setitem(schema.SOURCES, "bad", (("", "bad"),))
    with pytest.raises(ValueError, match=r"bad\.tsv:3"):
        schema.json_schema("bad")


@pytest.mark.parametrize("chart", charts.CHARTS)
def test_chart_says_that_it_is_a_stand_in(chart: str) -> None:
    meta = yaml.safe_load((charts.CHARTS_DIR / chart / "Chart.yaml").read_text())
    assert "Stand-in of the gpuboot lab (simulated)" in meta["description"]
    assert meta["annotations"]["gpuboot.lab/stand-in"] == "true"
    notes = (charts.CHARTS_DIR / chart / "templates" / "NOTES.txt").read_text()
    assert "Stand-in of the gpuboot lab (simulated)" in notes


def test_versions_are_upstreams() -> None:
    chart_versions = {
        chart: charts.chart_version(charts.CHARTS_DIR / chart) for chart in charts.CHARTS
    }
    assert chart_versions == {
        "gpu-operator": "v26.7.0",
        "kube-prometheus-stack": "88.5.3",
        "dcgm-exporter": "4.8.4",
    }


def test_unknown_chart(tmp_path: Path) -> None:
    with pytest.raises(charts.ChartError, match="no chart 'nginx'"):
        charts.assemble("nginx", tmp_path)


def test_package_is_the_same_each_time_and_holds_the_schema(tmp_path: Path) -> None:
    first = charts.package("dcgm-exporter", tmp_path / "a").read_bytes()
    archive = charts.package("dcgm-exporter", tmp_path / "b")
    assert archive.name == "dcgm-exporter-4.8.4.tgz"
    assert archive.read_bytes() == first
    with tarfile.open(archive) as tar:
        member = tar.extractfile("dcgm-exporter/values.schema.json")
        assert member is not None
        assert json.load(member) == schema.json_schema("dcgm-exporter")


def test_missing_module_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUBOOT_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(LabError, match=r"node-feature-discovery.*cannot be downloaded"):
        charts.assemble("gpu-operator", tmp_path)
