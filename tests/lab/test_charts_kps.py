"""The stand-in of kube-prometheus-stack: upstream's names, selectors and objects."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.charts import assemble as charts
from lab.charts.render import Object, find, helm_binary, names, render

if helm_binary() is None:
    pytest.skip("no helm (GPUBOOT_HELM, the mirror's, PATH)", allow_module_level=True)
if shutil.which("go") is None:
    pytest.skip("no go: the chart is completed from a Go module", allow_module_level=True)

STACK = "kube-prometheus-stack"

Render = Callable[..., list[Object]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return charts.assemble(STACK, tmp_path_factory.mktemp("charts"))


@pytest.fixture
def rendered(folder: Path) -> Render:
    def make(values: dict[str, Any] | None = None, release: str = STACK) -> list[Object]:
        return render(folder, release, "monitoring", values)

    return make


@pytest.mark.parametrize(
    ("release", "full"),
    [
        (STACK, STACK),
        ("prometheus", "prometheus-kube-prometheus"),
        ("mon", f"mon-{STACK}"),
    ],
)
def test_kps_names(rendered: Render, release: str, full: str) -> None:
    objects = rendered(release=release)
    services = names(objects, "Service")
    assert {f"{full}-prometheus", f"{full}-alertmanager", f"{full}-operator"} <= services
    assert f"{release}-prometheus-node-exporter" in services
    assert names(objects, "Prometheus") == {f"{full}-prometheus"}
    assert names(objects, "Alertmanager") == {f"{full}-alertmanager"}
    assert f"{release}-grafana" in names(objects, "Secret")
    pod = find(objects, "Deployment", f"{full}-operator")["spec"]["template"]["spec"]
    assert f"--kubelet-service=kube-system/{full}-kubelet" in pod["containers"][0]["args"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"matchLabels": {"release": "kube-prometheus-stack"}}),
        ({"serviceMonitorSelectorNilUsesHelmValues": False}, {}),
        ({"serviceMonitorSelector": {"matchLabels": {"a": "b"}}}, {"matchLabels": {"a": "b"}}),
    ],
)
def test_kps_selects_servicemonitors_as_upstream(
    rendered: Render, spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    objects = rendered({"prometheus": {"prometheusSpec": spec}})
    prometheus = find(objects, "Prometheus", f"{STACK}-prometheus")["spec"]
    assert prometheus["serviceMonitorSelector"] == expected
    assert prometheus["serviceMonitorNamespaceSelector"] == {}


def test_kps_prometheus_values(rendered: Render) -> None:
    spec = {
        "retention": "3d",
        "scrapeInterval": "15s",
        "replicas": 2,
        "externalLabels": {"cluster": "lab"},
        "resources": {"limits": {"memory": "1Gi"}},
    }
    objects = rendered({"prometheus": {"prometheusSpec": spec}})
    prometheus = find(objects, "Prometheus", f"{STACK}-prometheus")["spec"]
    assert {key: prometheus[key] for key in spec} == spec


@pytest.mark.parametrize(
    ("key", "name", "port", "scheme", "label"),
    [
        ("kubeControllerManager", "kube-controller-manager", 10257, "https", "component"),
        ("kubeScheduler", "kube-scheduler", 10259, "https", "component"),
        ("kubeEtcd", "kube-etcd", 2381, None, "component"),
        ("kubeProxy", "kube-proxy", 10249, None, "k8s-app"),
        ("coreDns", "coredns", 9153, None, "k8s-app"),
    ],
)
def test_kps_control_plane(
    rendered: Render, key: str, name: str, port: int, scheme: str | None, label: str
) -> None:
    objects = rendered()
    service = find(objects, "Service", f"{STACK}-{name}")
    assert service["metadata"]["namespace"] == "kube-system"
    assert service["spec"]["clusterIP"] == "None"
    pods = {"kube-etcd": "etcd", "coredns": "kube-dns"}.get(name, name)  # kubeadm's labels
    assert service["spec"]["selector"] == {label: pods}
    assert service["spec"]["ports"][0]["port"] == port
    [endpoint] = find(objects, "ServiceMonitor", f"{STACK}-{name}")["spec"]["endpoints"]
    assert endpoint.get("scheme") == scheme
    assert ("tlsConfig" in endpoint) is (scheme == "https")
    off = rendered({key: {"enabled": False}})
    assert f"{STACK}-{name}" not in names(off, "Service") | names(off, "ServiceMonitor")


def test_kps_alertmanager_config_is_the_values(rendered: Render) -> None:
    config = {"route": {"receiver": "team"}, "receivers": [{"name": "team"}]}
    objects = rendered({"alertmanager": {"config": config}})
    secret = find(objects, "Secret", "alertmanager-kube-prometheus-stack-alertmanager")
    alertmanager = yaml.safe_load(base64.b64decode(secret["data"]["alertmanager.yaml"]))
    assert alertmanager["receivers"] == config["receivers"]
    assert alertmanager["route"]["receiver"] == "team"


def test_kps_grafana_is_only_its_objects(rendered: Render) -> None:
    values = {
        "grafana": {"adminPassword": "s3cret", "dashboards": {"gpu": {"fleet": {"json": "{}"}}}}
    }
    objects = rendered(values)
    secret = find(objects, "Secret", "kube-prometheus-stack-grafana")
    assert base64.b64decode(secret["data"]["admin-password"]) == b"s3cret"
    board = find(objects, "ConfigMap", "kube-prometheus-stack-grafana-dashboards-gpu")
    assert board["data"] == {"fleet.json": "{}"}
    assert not [
        o for o in objects if o["kind"] == "Deployment" and "grafana" in o["metadata"]["name"]
    ]
    without_secret = rendered({"grafana": {"admin": {"existingSecret": "mine"}}})
    assert "kube-prometheus-stack-grafana" not in names(without_secret, "Secret")


def test_kps_rules_map(rendered: Render) -> None:
    groups = [{"name": "g", "rules": [{"alert": "A", "expr": "up == 0"}]}]
    objects = rendered({"additionalPrometheusRulesMap": {"gpu": {"groups": groups}}})
    rule = find(objects, "PrometheusRule", "kube-prometheus-stack-gpu")
    assert rule["spec"]["groups"] == groups
    assert rule["metadata"]["labels"]["release"] == "kube-prometheus-stack"
