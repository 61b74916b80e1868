"""What kube-prometheus-stack is told: where it keeps things, shows them, and sends them on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpuboot.charts import monitoring_values
from gpuboot.charts.remote_write import contents, existing, files, recorded, user_names
from gpuboot.charts.volumes import retention_size
from gpuboot.config.settings import SettingsError, parse_settings
from gpuboot.kubernetes.values import Values
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
    found: Values = values(**monitoring)["prometheus"]["prometheusSpec"]
    return found


@pytest.mark.parametrize(
    "monitoring",
    [
        {"ingress": INGRESS, "remote_write": REMOTE, "scrape_annotations": True},
        {"storage": {"class_name": "fast"}, "alertmanager_node_port": 30903},
        {"storage": {"persistent": False}, "grafana": False},
    ],
)
def test_every_key_is_one_the_chart_has(monitoring: dict[str, Any]) -> None:
    assert list(unknown(values(**monitoring), json_schema("kube-prometheus-stack"))) == []


def test_alerts_and_remote_series_name_the_cluster() -> None:
    assert spec()["externalLabels"] == {"cluster": "site1"}


def test_volumes() -> None:
    made = values(storage={"class_name": "fast", "prometheus_size": "100Gi"})
    claim = made["prometheus"]["prometheusSpec"]["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert claim["storageClassName"] == "fast"
    assert claim["resources"] == {"requests": {"storage": "100Gi"}}
    assert made["alertmanager"]["alertmanagerSpec"]["storage"]["volumeClaimTemplate"]
    assert made["grafana"]["persistence"] == {
        "enabled": True,
        "size": "5Gi",
        "storageClassName": "fast",
        "annotations": {"helm.sh/resource-policy": "keep"},
    }
    assert made["grafana"]["deploymentStrategy"] == {"type": "Recreate"}


def test_without_a_class_the_clusters_default_is_asked_for() -> None:
    claim = spec()["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert "storageClassName" not in claim  # "" would mean: no class at all


def test_nothing_is_kept_where_that_is_not_wanted() -> None:
    made = values(storage={"persistent": False})
    assert "storageSpec" not in made["prometheus"]["prometheusSpec"]
    assert "retentionSize" not in made["prometheus"]["prometheusSpec"]
    assert "storage" not in made["alertmanager"].get("alertmanagerSpec", {})
    assert "persistence" not in made["grafana"]


@pytest.mark.parametrize(
    ("monitoring", "size"),
    [
        ({}, "43520MB"),  # 85 % of 50 GiB
        ({"storage": {"prometheus_size": "1Ti"}}, "891289MB"),
        ({"storage": {"prometheus_size": "500Mi"}}, "425MB"),
        ({"storage": {"prometheus_size": "4194304Ki"}}, "3481MB"),
        ({"retention_size": "10GB"}, "10GB"),
        ({"storage": {"persistent": False}}, None),
        ({"storage": {"persistent": False}, "retention_size": "10GB"}, "10GB"),
    ],
)
def test_retention_leaves_room_on_the_volume(monitoring: dict[str, Any], size: str | None) -> None:
    assert retention_size(parse_settings({"monitoring": monitoring}).monitoring) == size


def test_node_ports() -> None:
    made = values(prometheus_node_port=30090, grafana_node_port=32322, alertmanager_node_port=30903)
    ports = {name: made[name]["service"] for name in ("prometheus", "grafana", "alertmanager")}
    assert ports == {
        "prometheus": {"type": "NodePort", "nodePort": 30090},
        "grafana": {"type": "NodePort", "nodePort": 32322},
        "alertmanager": {"type": "NodePort", "nodePort": 30903},
    }
    assert values()["alertmanager"]["service"] == {"type": "ClusterIP"}


def test_ingress_with_tls_and_links_that_lead_there() -> None:
    made = values(ingress=INGRESS)
    assert made["prometheus"]["ingress"] == {
        "enabled": True,
        "hosts": ["prometheus.example.org"],
        "annotations": {"cert-manager.io/cluster-issuer": "site"},
        "ingressClassName": "nginx",
        "tls": [{"secretName": "web", "hosts": ["prometheus.example.org"]}],
    }
    assert made["prometheus"]["prometheusSpec"]["externalUrl"] == "https://prometheus.example.org"
    assert made["alertmanager"]["alertmanagerSpec"]["externalUrl"] == "https://alerts.example.org"
    server = made["grafana"]["grafana.ini"]["server"]
    assert server["root_url"] == "https://grafana.example.org/"


def test_only_the_names_that_are_given_get_an_ingress() -> None:
    made = values(ingress={"grafana": "g.example.org"})
    assert "ingress" not in made["prometheus"]
    assert made["grafana"]["grafana.ini"]["server"]["root_url"] == "http://g.example.org/"
    assert "tls" not in made["grafana"]["ingress"]


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
    found = contents(parse_settings({"monitoring": {"remote_write": remote}}))
    assert {key: value.get_secret_value() for key, value in found.items()} == {
        "mimir-username": "gpu",
        "mimir-password": "hunter2",
    }
    assert "hunter2" not in str(spec(remote_write=remote))
    assert contents(parse_settings({})) == {}
    with pytest.raises(SettingsError, match=r"monitoring\.remote_write\.0\.password"):
        contents(parse_settings({"monitoring": {"remote_write": REMOTE}}))


@pytest.mark.parametrize(
    ("series", "gpu", "ours"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", True, False),
        ("kube_pod_info", True, False),
        ("node:gpu_expected:count", True, True),
        ("namespace_pod:sm_active:avg2m", True, True),
        ("node:node_num_cpu:sum", False, False),  # the chart's own rules
        ("container_memory_rss", False, False),
    ],
)
def test_what_remote_write_keeps(series: str, gpu: bool, ours: bool) -> None:
    mimir, thanos = spec(remote_write=REMOTE)["remoteWrite"]
    for remote, kept in ((mimir, gpu), (thanos, ours)):
        [rule] = remote["writeRelabelConfigs"]
        assert rule["action"] == "keep"
        assert bool(re.fullmatch(rule["regex"], series)) is kept


def test_everything_means_no_relabelling() -> None:
    [item] = spec(remote_write=[{"url": "https://x.example.org/push"}])["remoteWrite"]
    assert item == {"name": "remote", "url": "https://x.example.org/push"}
    assert len(recorded(parse_settings({}))) > 20


@pytest.mark.parametrize(
    ("remote", "said"),
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
def test_remote_write_mistakes(remote: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_settings({"monitoring": {"remote_write": remote}})


def test_kube_state_metrics_shows_the_labels_that_rules_read() -> None:
    allowed = values()["kube-state-metrics"]["metricLabelsAllowlist"]
    assert "namespaces=[team]" in allowed
    assert any("gpuboot.io/gpus" in item for item in allowed)
