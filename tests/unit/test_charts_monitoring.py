"""What kube-prometheus-stack is told: where it keeps things, shows them, and sends them on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.values import Values
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.monitoring.charts.monitoring_values import monitoring_values
from gpuboot.monitoring.charts.remote_write import (
    contents,
    existing,
    files,
    recorded,
    user_names,
)
from lab.charts.schema import json_schema
from tests.unit.test_charts import unknown

INGRESS = {
    "class_name": "nginx",
    "prometheus": "prometheus.example.org",
    "alertmanager": "alerts.example.org",
    "grafana": "grafana.example.org",
    "tls_secret": "web",
    "annotations": {"cert-manager.io/cluster-issuer": "site"},
}
REMOTE = [
    {
        "url": "https://mimir.example.org/api/v1/push",
        "name": "mimir",
        "username": "gpu",
        "password": {"file": "/secrets/mimir"},
        "headers": {"X-Scope-OrgID": "gpu"},
        "only": "gpu",
    },
    {
        "url": "https://thanos.example.org/api/v1/receive",
        "name": "thanos",
        "bearer_token": {"secret": "thanos-token/token"},
        "only": "recorded",
    },
]


def values(**monitoring: Any) -> Values:
    return monitoring_values(
        parse_settings({"cluster": {"name": "site1"}, "monitoring": monitoring})
    )


def spec(**monitoring: Any) -> Values:
    result: Values = values(**monitoring)["prometheus"]["prometheusSpec"]
    return result


@pytest.mark.parametrize(
    "monitoring",
    [
        {"ingress": INGRESS, "remote_write": REMOTE},
        {"storage": {"class_name": "fast"}, "node_ports": {"alertmanager": 30903}},
        {"storage": {"persistent": False}, "grafana": False},
    ],
)
def test_every_key_is_one_the_chart_has(monitoring: dict[str, Any]) -> None:
    assert list(unknown(values(**monitoring), json_schema("kube-prometheus-stack"))) == []


def test_alerts_and_remote_series_name_the_cluster() -> None:
    assert spec()["externalLabels"] == {"cluster": "site1"}


def test_volumes() -> None:
    chart_values = values(storage={"class_name": "fast", "prometheus_size": "100Gi"})
    claim = chart_values["prometheus"]["prometheusSpec"]["storageSpec"]["volumeClaimTemplate"][
        "spec"
    ]
    assert claim["storageClassName"] == "fast"
    assert claim["resources"] == {"requests": {"storage": "100Gi"}}
    assert chart_values["alertmanager"]["alertmanagerSpec"]["storage"]["volumeClaimTemplate"]
    assert chart_values["grafana"]["persistence"] == {
        "enabled": True,
        "size": "5Gi",
        "storageClassName": "fast",
        "annotations": {"helm.sh/resource-policy": "keep"},
    }
    assert chart_values["grafana"]["deploymentStrategy"] == {"type": "Recreate"}


def test_without_a_class_the_clusters_default_is_asked_for() -> None:
    claim = spec()["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert "storageClassName" not in claim  # "" would mean: no class at all


def test_nothing_is_kept_where_that_is_not_wanted() -> None:
    chart_values = values(storage={"persistent": False})
    assert "storageSpec" not in chart_values["prometheus"]["prometheusSpec"]
    # a folder of the node's: nothing but Prometheus itself holds it to a size
    assert chart_values["prometheus"]["prometheusSpec"]["retentionSize"] == "43520MB"
    assert "storage" not in chart_values["alertmanager"].get("alertmanagerSpec", {})
    assert "persistence" not in chart_values["grafana"]


@pytest.mark.parametrize(
    ("volume", "size"),
    [("50Gi", "43520MB"), ("1Ti", "891289MB"), ("500Mi", "425MB"), ("4194304Ki", "3481MB")],
)
def test_retention_leaves_room_on_the_volume(volume: str, size: str) -> None:
    spec = values(storage={"prometheus_size": volume})["prometheus"]["prometheusSpec"]
    assert spec["retentionSize"] == size


def test_node_ports() -> None:
    node_ports = {"prometheus": 30090, "grafana": 32322, "alertmanager": 30903}
    chart_values = values(node_ports=node_ports)
    ports = {
        name: chart_values[name]["service"] for name in ("prometheus", "grafana", "alertmanager")
    }
    assert ports == {
        "prometheus": {"type": "NodePort", "nodePort": 30090},
        "grafana": {"type": "NodePort", "nodePort": 32322},
        "alertmanager": {"type": "NodePort", "nodePort": 30903},
    }
    assert values()["alertmanager"]["service"] == {"type": "ClusterIP"}


def test_ingress_with_tls_and_links_that_lead_there() -> None:
    chart_values = values(ingress=INGRESS)
    assert chart_values["prometheus"]["ingress"] == {
        "enabled": True,
        "hosts": ["prometheus.example.org"],
        "annotations": {"cert-manager.io/cluster-issuer": "site"},
        "ingressClassName": "nginx",
        "tls": [{"secretName": "web", "hosts": ["prometheus.example.org"]}],
    }
    assert (
        chart_values["prometheus"]["prometheusSpec"]["externalUrl"]
        == "https://prometheus.example.org"
    )
    assert (
        chart_values["alertmanager"]["alertmanagerSpec"]["externalUrl"]
        == "https://alerts.example.org"
    )
    server = chart_values["grafana"]["grafana.ini"]["server"]
    assert server["root_url"] == "https://grafana.example.org/"


def test_only_the_names_that_are_given_get_an_ingress() -> None:
    chart_values = values(ingress={"grafana": "g.example.org"})
    assert "ingress" not in chart_values["prometheus"]
    assert chart_values["grafana"]["grafana.ini"]["server"]["root_url"] == "http://g.example.org/"
    assert "tls" not in chart_values["grafana"]["ingress"]


def test_remote_write_names_secrets_and_holds_none() -> None:
    mimir, thanos = spec(remote_write=REMOTE)["remoteWrite"]
    assert mimir["basicAuth"] == {
        "username": {"name": "gpuboot-remote-write", "key": "mimir-username"},
        "password": {"name": "gpuboot-remote-write", "key": "mimir-password"},
    }
    assert thanos["authorization"]["credentials"] == {"name": "thanos-token", "key": "token"}
    settings = parse_settings({"monitoring": {"remote_write": REMOTE}})
    assert user_names(settings) == {"mimir-username": "gpu"}
    [(key, source)] = files(settings).items()
    assert (key, source.path) == ("mimir-password", "/secrets/mimir")
    assert source.setting == "monitoring.remote_write.0.password.file"
    assert existing(settings) == {"thanos-token": ["token"]}


def test_the_secrets_contents_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "mimir").write_text("hunter2\n")
    remote = [{**REMOTE[0], "password": {"file": str(tmp_path / "mimir")}}]
    secret_contents = contents(parse_settings({"monitoring": {"remote_write": remote}}))
    assert {key: value.get_secret_value() for key, value in secret_contents.items()} == {
        "mimir-username": "gpu",
        "mimir-password": "hunter2",
    }
    assert "hunter2" not in str(spec(remote_write=remote))
    assert contents(parse_settings({})) == {}
    with pytest.raises(SettingsError, match=r"monitoring\.remote_write\.0\.password"):
        contents(parse_settings({"monitoring": {"remote_write": REMOTE}}))


@pytest.mark.parametrize(
    ("series", "gpu", "is_own"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", True, False),
        ("kube_pod_info", True, False),
        ("node:gpu_expected:count", True, True),
        ("namespace_pod:sm_active:avg2m", True, True),
        ("node:node_num_cpu:sum", False, False),  # the chart's own rules
        ("container_memory_rss", False, False),
    ],
)
def test_what_remote_write_keeps(series: str, gpu: bool, is_own: bool) -> None:
    mimir, thanos = spec(remote_write=REMOTE)["remoteWrite"]
    for remote, is_kept in ((mimir, gpu), (thanos, is_own)):
        [rule] = remote["writeRelabelConfigs"]
        assert rule["action"] == "keep"
        assert bool(re.fullmatch(rule["regex"], series)) is is_kept


def test_everything_means_no_relabelling() -> None:
    [item] = spec(remote_write=[{"url": "https://x.example.org/push"}])["remoteWrite"]
    assert item == {"name": "remote", "url": "https://x.example.org/push"}
    assert len(recorded(parse_settings({}))) > 20


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        ([{"url": "https://a.example"}, {"url": "https://b.example"}], "name of its own"),
        ([{"url": "https://a.example", "username": "me"}], "go together"),
        (
            [
                {
                    "url": "https://a.example",
                    "username": "me",
                    "password": {"file": "p"},
                    "bearer_token": {"file": "t"},
                }
            ],
            "either",
        ),
    ],
)
def test_remote_write_mistakes(remote: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings({"monitoring": {"remote_write": remote}})


def test_kube_state_metrics_shows_the_labels_that_rules_read() -> None:
    allowed = values()["kube-state-metrics"]["metricLabelsAllowlist"]
    assert "namespaces=[team]" in allowed
    assert any("gpuboot.io/gpus" in item for item in allowed)
