"""The stand-in of kube-prometheus-stack: kube-state-metrics, volumes, ways in, remote stores.

What is expected was compared with what upstream's own chart 88.5.3 makes of the same values.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from lab.charts.render import HelmError, find, names
from tests.lab.test_charts_kps import STACK, Render, folder, rendered

__all__ = ["folder", "rendered"]  # fixtures

KSM = f"{STACK}-kube-state-metrics"
SELECTOR = {
    "app.kubernetes.io/name": "kube-state-metrics",
    "app.kubernetes.io/instance": STACK,
}


def container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [only_container] = find(objects, "Deployment", KSM)["spec"]["template"]["spec"]["containers"]
    assert isinstance(only_container, dict)
    return only_container


def arguments(objects: list[dict[str, Any]]) -> dict[str, str]:
    pairs = (argument.removeprefix("--").partition("=") for argument in container(objects)["args"])
    return {name: value for name, _, value in pairs}


def test_kube_state_metrics_is_scraped_under_its_name(rendered: Render) -> None:
    objects = rendered()
    monitor = find(objects, "ServiceMonitor", KSM)
    assert monitor["metadata"]["labels"]["release"] == STACK
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    assert monitor["spec"]["endpoints"] == [{"port": "http", "honorLabels": True}]
    assert monitor["spec"]["selector"] == {"matchLabels": SELECTOR}
    service = find(objects, "Service", KSM)
    assert service["metadata"]["labels"].items() >= SELECTOR.items()
    assert service["spec"]["selector"] == SELECTOR
    assert [(p["name"], p["port"], p["targetPort"]) for p in service["spec"]["ports"]] == [
        ("http", 8080, "http")
    ]
    pod = find(objects, "Deployment", KSM)["spec"]["template"]
    assert pod["metadata"]["labels"].items() >= SELECTOR.items()
    assert container(objects)["image"].startswith("registry.k8s.io/kube-state-metrics/")
    assert [port["name"] for port in container(objects)["ports"]] == ["http", "metrics"]
    probes = {
        name: container(objects)[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")
    }
    assert {name: (probe["path"], probe["port"]) for name, probe in probes.items()} == {
        "liveness": ("/livez", "http"),
        "readiness": ("/readyz", "metrics"),
    }


def test_kube_state_metrics_gets_what_it_is_asked_for(rendered: Render) -> None:
    labels = ["nodes=[nvidia.com/gpu.present]", "namespaces=[team]"]
    values = {
        "metricLabelsAllowlist": labels,
        "collectors": ["nodes", "pods"],
        "collectorsExclude": ["pods"],
        "collectorsExtra": ["daemonsets"],
        "namespaces": "ml,gpu-operator",
        "namespacesDenylist": "kube-system",
        "prometheus": {"monitor": {"http": {"interval": "15s"}}},
    }
    objects = rendered({"kube-state-metrics": values})
    assert arguments(objects) == {
        "port": "8080",
        "resources": "nodes,daemonsets",
        "metric-labels-allowlist": ",".join(labels),
        "namespaces": "ml,gpu-operator",
        "namespaces-denylist": "kube-system",
    }
    rules = find(objects, "ClusterRole", KSM)["rules"]
    assert {(rule["apiGroups"][0], *rule["resources"]) for rule in rules} == {
        ("", "nodes"),
        ("apps", "daemonsets"),
    }
    [endpoint] = find(objects, "ServiceMonitor", KSM)["spec"]["endpoints"]
    assert endpoint["interval"] == "15s"


def test_kube_state_metrics_may_read_each_resource_it_asks_for(rendered: Render) -> None:
    objects = rendered()
    allowed = [r for rule in find(objects, "ClusterRole", KSM)["rules"] for r in rule["resources"]]
    assert sorted(allowed) == sorted(arguments(objects)["resources"].split(","))
    assert "metric-labels-allowlist" not in arguments(objects)


def test_kube_state_metrics_can_be_left_out(rendered: Render) -> None:
    objects = rendered({"kubeStateMetrics": {"enabled": False}})
    assert [o for o in objects if KSM in o["metadata"]["name"]] == []
    unwatched = rendered({"kube-state-metrics": {"prometheus": {"monitor": {"enabled": False}}}})
    assert KSM not in names(unwatched, "ServiceMonitor")


def test_volumes_and_secrets(rendered: Render) -> None:
    claim = {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}}
    values = {
        "prometheus": {"prometheusSpec": {"storageSpec": claim, "retentionSize": "1700MB"}},
        "alertmanager": {
            "alertmanagerSpec": {"storage": claim, "secrets": ["keys"], "configMaps": ["ca"]}
        },
    }
    objects = rendered(values)
    prometheus = find(objects, "Prometheus", f"{STACK}-prometheus")["spec"]
    assert prometheus["storage"] == claim
    assert prometheus["retentionSize"] == "1700MB"
    alertmanager = find(objects, "Alertmanager", f"{STACK}-alertmanager")["spec"]
    assert alertmanager["storage"] == claim
    assert (alertmanager["secrets"], alertmanager["configMaps"]) == (["keys"], ["ca"])
    assert "storage" not in find(rendered(), "Prometheus", f"{STACK}-prometheus")["spec"]


def test_remote_stores_and_other_scrapes(rendered: Render) -> None:
    first, two = {"url": "https://a.example.org", "name": "a"}, {"url": "https://b.example.org"}
    scrape = {"job_name": "x", "relabel_configs": [{"replacement": "$1:$2"}]}
    spec = {
        "remoteWrite": [first],
        "additionalRemoteWrite": [two],
        "additionalScrapeConfigs": [scrape],
        "enableFeatures": ["exemplar-storage"],
        "replicaExternalLabelNameClear": True,
    }
    objects = rendered({"prometheus": {"prometheusSpec": spec}})
    prometheus = find(objects, "Prometheus", f"{STACK}-prometheus")["spec"]
    assert prometheus["remoteWrite"] == [first, two]
    assert prometheus["enableFeatures"] == ["exemplar-storage"]
    assert prometheus["replicaExternalLabelName"] == ""
    assert "prometheusExternalLabelName" not in prometheus
    additional = prometheus["additionalScrapeConfigs"]
    secret = find(objects, "Secret", additional["name"])["data"][additional["key"]]
    assert yaml.safe_load(base64.b64decode(secret)) == [scrape]


def test_braces_are_templates_where_upstream_takes_them_for_such(rendered: Render) -> None:
    labels = {"cluster": "{{ .Release.Name }}"}
    objects = rendered({"prometheus": {"prometheusSpec": {"externalLabels": labels}}})
    prometheus = find(objects, "Prometheus", f"{STACK}-prometheus")["spec"]
    assert prometheus["externalLabels"] == {"cluster": STACK}
    broken = [{"url": "https://a.example.org/{{ $labels.node }}"}]
    with pytest.raises(HelmError, match="undefined variable"):
        rendered({"prometheus": {"prometheusSpec": {"remoteWrite": broken}}})


@pytest.mark.parametrize(
    ("kind", "port", "path_type", "url"),
    [
        ("prometheus", 9090, "ImplementationSpecific", "https://gpu.example.org/"),
        ("alertmanager", 9093, "ImplementationSpecific", "http://gpu.example.org/"),
        ("grafana", 80, "Prefix", None),
    ],
)
def test_ingresses(rendered: Render, kind: str, port: int, path_type: str, url: str | None) -> None:
    ingress = {
        "enabled": True,
        "ingressClassName": "nginx",
        "hosts": ["gpu.example.org"],
        "annotations": {"cert-manager.io/cluster-issuer": "own"},
        "tls": [{"secretName": "names", "hosts": ["gpu.example.org"]}],
    }
    objects = rendered({kind: {"ingress": ingress}})
    [rendered_ingress] = [o for o in objects if o["kind"] == "Ingress"]
    assert rendered_ingress["metadata"]["name"] == f"{STACK}-{kind}"
    assert rendered_ingress["metadata"]["annotations"] == ingress["annotations"]
    spec = rendered_ingress["spec"]
    assert (spec["ingressClassName"], spec["tls"]) == ("nginx", ingress["tls"])
    [rule] = spec["rules"]
    assert rule["host"] == "gpu.example.org"
    backend = {"service": {"name": f"{STACK}-{kind}", "port": {"number": port}}}
    assert rule["http"]["paths"] == [{"path": "/", "pathType": path_type, "backend": backend}]
    if url is not None:
        assert find(objects, kind.title(), f"{STACK}-{kind}")["spec"]["externalUrl"] == url


def test_network_policies(rendered: Render) -> None:
    on = {"networkPolicy": {"enabled": True}}
    kinds = ("prometheus", "alertmanager", "prometheusOperator", "kube-state-metrics")
    objects = rendered(dict.fromkeys(kinds, on))
    assert names(objects, "NetworkPolicy") == {
        *(f"{STACK}-prometheus", f"{STACK}-alertmanager", f"{STACK}-operator"),
        KSM,
    }
    to_alertmanager = find(objects, "NetworkPolicy", f"{STACK}-alertmanager")["spec"]["ingress"]
    prometheus = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}}}
    assert to_alertmanager[0]["from"] == [prometheus]
    assert [port["port"] for port in to_alertmanager[0]["ports"]] == [9093, 8080]
    assert find(objects, "NetworkPolicy", KSM)["spec"]["podSelector"] == {"matchLabels": SELECTOR}
    assert names(rendered(), "NetworkPolicy") == set()
