"""A verification of a cluster in which what serves metrics cannot be: it says why, and soon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.verify import blocked
from gpuboot.verify.metrics_wait import settle_s
from tests.unit.evidence import SIZES, of
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import SETTINGS, clock, run

__all__ = ["clock"]

WITHIN_S = 12.0
PATIENT = SETTINGS.model_copy(
    update={"verify": SETTINGS.verify.model_copy(update={"timeout_s": 300})}
)
# Kubernetes 1.36.3: a DaemonSet whose pod a quota refuses
QUOTA = (
    '(combined from similar events): Error creating: pods "nvidia-dcgm-exporter-6x4dq" is '
    "forbidden: failed quota: corp: must specify limits.cpu for: toolkit-validation"
)
WEBHOOK = 'Error creating: admission webhook "pods.corp.example.com" denied the request: no pods'
SECURITY = (
    'Error creating: pods "prometheus-x-0" is forbidden: violates PodSecurity "restricted:latest": '
    "allowPrivilegeEscalation != false"
)


def refusal(kind: str, namespace: str, name: str, message: str) -> dict[str, Any]:
    """An event of a workload whose pods are refused."""
    involved = {"kind": kind, "namespace": namespace, "name": name}
    return {
        "involvedObject": involved,
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": "2026-11-25T22:45:09Z",
    }


def exporters(desired: int = 2, current: int = 1) -> dict[str, Any]:
    """The exporters' DaemonSet, with as many pods."""
    return {
        "metadata": {"namespace": "gpu-operator", "name": "nvidia-dcgm-exporter"},
        "status": {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": current,
            "numberReady": current,
            "updatedNumberScheduled": current,
        },
    }


@dataclass
class Blocking(FakeCluster):
    """+ exported: nodes that have an exporter; daemonsets, events: of the cluster
    + is_stopped: Prometheus has no pod
    """

    exported: tuple[str, ...] = ("gpu1",)
    daemonsets: list[dict[str, Any]] = field(default_factory=lambda: [exporters()])
    statefulsets: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    exporter_pods: list[dict[str, Any]] = field(default_factory=list)
    is_stopped: bool = False

    def _exporters(self) -> list[dict[str, Any]]:
        return [item for item in super()._exporters() if item["spec"]["nodeName"] in self.exported]

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        if path == "/apis/apps/v1/daemonsets":
            return {"items": self.daemonsets if query["labelSelector"].startswith("app=") else []}
        if path.startswith("/apis/apps/v1/namespaces/monitoring/"):
            return {"items": self.statefulsets if path.endswith("statefulsets") else []}
        if path == "/api/v1/events":
            return {"items": self.events}
        if path == "/api/v1/namespaces/gpu-operator/pods":
            return {"items": self.exporter_pods}
        if path == "/api/v1/namespaces/monitoring/pods":
            return {"items": []}
        if self.is_stopped and "prometheus-operated" in path:
            raise ClusterError(f"GET {path}: 503 no endpoints available", 503)
        return super()._answer(path, query)


@pytest.mark.parametrize(
    ("message", "name"),
    [(QUOTA, "the quota corp"), (WEBHOOK, "the admission webhook pods.corp.example.com")],
)
def test_a_refused_exporter_is_not_waited_for(message: str, name: str) -> None:
    event = refusal("DaemonSet", "gpu-operator", "nvidia-dcgm-exporter", message)
    proof = run(Blocking(events=[event]), PATIENT)
    assert proof.evidence.durations["metrics"] < WITHIN_S
    [finding] = of(list(proof.findings), "fail", "exporter")
    assert finding.node == "gpu2"
    assert message in finding.detail
    assert name in finding.remedy


def test_an_exporter_that_nothing_makes_is_not_waited_for() -> None:
    proof = run(Blocking(exported=(), daemonsets=[]), PATIENT)
    assert proof.evidence.durations["metrics"] < WITHIN_S
    details = {finding.detail for finding in of(list(proof.findings), "fail", "exporter")}
    assert details == {
        "no dcgm-exporter pod runs on this node: there is no DaemonSet of dcgm-exporter"
    }


def test_an_exporter_without_a_node_is_not_waited_for() -> None:
    pod = {
        "metadata": {
            "namespace": "gpu-operator",
            "name": "nvidia-dcgm-exporter-6x4dq",
            "creationTimestamp": "1970-01-01T00:00:00Z",
        },
        "spec": {},
        "status": {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "message": "0/2 nodes are available: 1 Insufficient memory.",
                }
            ],
        },
    }
    proof = run(Blocking(exporter_pods=[pod], daemonsets=[exporters(2, 2) | {
        "status": {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 1,
                   "updatedNumberScheduled": 2}}]), PATIENT)  # fmt: skip
    assert proof.evidence.durations["metrics"] < WITHIN_S
    assert "Insufficient memory" in of(list(proof.findings), "fail", "exporter")[0].detail


def test_an_exporter_that_a_label_keeps_off_a_node_is_not_waited_for() -> None:
    proof = run(Blocking(daemonsets=[exporters(1, 1)]), PATIENT)
    assert proof.evidence.durations["metrics"] < WITHIN_S
    [finding] = of(list(proof.findings), "fail", "exporter")
    assert finding.node == "gpu2"
    assert "DaemonSet gpu-operator/nvidia-dcgm-exporter wants 1 pods and has them" in finding.detail
    changed = exporters(1, 1)
    changed["metadata"]["generation"] = 2  # its controller has not seen the newest selector
    proof = run(Blocking(daemonsets=[changed]), PATIENT)
    assert proof.evidence.durations["metrics"] >= settle_s(PATIENT)


def test_an_exporter_that_may_be_starting_is_waited_for() -> None:
    proof = run(Blocking(), PATIENT)
    assert proof.evidence.durations["metrics"] >= settle_s(PATIENT)


def test_a_refused_prometheus_is_not_waited_for() -> None:
    name = "prometheus-kube-prometheus-stack-prometheus"
    statefulset = {
        "metadata": {"namespace": "monitoring", "name": name},
        "spec": {"replicas": 1},
        "status": {},
    }
    cluster = Blocking(
        exported=tuple(SIZES),
        statefulsets=[statefulset],
        events=[refusal("StatefulSet", "monitoring", name, SECURITY)],
        is_stopped=True,
    )
    proof = run(cluster, PATIENT)
    assert proof.evidence.durations["metrics"] < WITHIN_S
    rules = next(finding for finding in proof.findings if finding.link == "rules")
    assert 'violates PodSecurity "restricted:latest"' in rules.detail
    assert "kubectl label --overwrite namespace monitoring" in rules.remedy


def test_where_there_is_no_monitoring_nobody_asks_for_it() -> None:
    cluster = Blocking(daemonsets=[])
    sources = blocked.read(cast(Cluster, cluster), namespace="", grafana="")
    assert set(sources) == {"exporter"}


def test_settings_wait_longer_than_this() -> None:
    assert settle_s(parse_settings({})) > WITHIN_S
