"""What the settings want of the monitoring stack, as verification expects it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.manifests import as_owned
from gpuboot.cluster.objects import Claim
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.monitoring import objects as monitoring
from gpuboot.monitoring import rules
from gpuboot.monitoring.stack_objects import ExpectedObjects
from gpuboot.verify.collector import MetricsCollector
from tests.unit.test_checks_monitoring_objects import NODES, RULE, VOLUME


def expectation(data: dict[str, Any]) -> ExpectedObjects:
    return monitoring.expectation(parse_settings(data), NODES)


def test_what_is_expected_follows_the_settings() -> None:
    expected = expectation({"monitoring": {"storage": {"prometheus_size": "7Gi"}}})
    assert expected.claims == {
        VOLUME: "7Gi",
        "alertmanager-kube-prometheus-stack-alertmanager-db-": "1Gi",
        "kube-prometheus-stack-grafana": "5Gi",
    }
    assert RULE in expected.objects
    names = [name for group in expected.groups.values() for name in group]
    assert "node:gpu_expected:count" in names
    assert len(names) == sum(len(g["rules"]) for g in rules.groups(Settings(), NODES))
    assert expected.rules_digest == rules.digest(rules.groups(Settings(), NODES))
    assert expected.alertmanager["route"]["receiver"]
    assert expected.state_metrics


def test_what_is_switched_off_is_not_expected() -> None:
    expected = expectation(
        {
            "alerts": {"enabled": False},
            "monitoring": {
                "grafana": False,
                "storage": {"persistent": False},
                "values": {
                    "alertmanager": {"enabled": False},
                    "kubeStateMetrics": {"enabled": False},
                },
            },
        }
    )
    group_names = {"static", "gpus", "allocation", "info", "applications"}
    assert set(expected.groups) == {f"gpuboot-{name}" for name in group_names}
    assert (expected.alertmanager, expected.claims) == ({}, {})
    assert not expected.state_metrics


class Api:
    """The API server's lists."""

    def service(self, namespace: str, name: str, port: int) -> str:
        return f"/{name}"

    def json(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        if path.endswith("persistentvolumeclaims"):
            status = {"phase": "Bound", "capacity": {"storage": "50Gi"}}
            metadata = {"namespace": "monitoring", "name": f"{VOLUME}0"}
            return {"items": [{"metadata": metadata, "status": status}]}
        if path.endswith("prometheusrules"):
            raise ClusterError("GET …: 404", 404)
        assert query == {"labelSelector": "app.kubernetes.io/managed-by=gpuboot"}
        item = as_owned({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "m"}})
        return {"items": [item] if path == "/api/v1/configmaps" else []}


def test_the_clusters_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    gatherer = MetricsCollector(cast(Cluster, Api()), Settings())
    with pytest.raises(ClusterError, match="404"):  # a missing kind is no empty list
        gatherer.observed_objects()
    monkeypatch.setattr("gpuboot.verify.collector.PATHS", {"ConfigMap": "/api/v1/configmaps"})
    observed = gatherer.observed_objects()
    assert observed.claims == (Claim("monitoring", f"{VOLUME}0", "50Gi", phase="Bound"),)
    [(key, digest)] = observed.objects.items()
    assert key == ("ConfigMap", "m", "a")
    assert len(digest) == 64
