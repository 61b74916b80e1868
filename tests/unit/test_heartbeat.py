"""Kubelets that stop: told before pods are started there, and while they are waited for.

Kubernetes v1.36.3: the kubelet renews its Lease every 10 s, the node stays Ready for 40 s without.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.verify.heartbeat import Heartbeats
from tests.unit.evidence import of, only
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, run

__all__ = ["clock"]

NOW = 1000.0  # where the tests' clock begins
LONG = parse_settings({"monitoring": {"enabled": False}, "verify": {"timeout_s": 300}})


class Leases:
    """Nodes' Leases, each by its node's own clock.

    + offsets: node -> seconds by which its clock is ahead of the API server's
    + stopped: node -> when its kubelet stopped
    """

    def __init__(self, offsets: dict[str, float], stopped: dict[str, float]) -> None:
        self.offsets, self.stopped = offsets, stopped

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.monotonic(), UTC)

    def json(self, path: str) -> Any:
        assert path == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        return {"items": [self._lease(node) for node in self.offsets]}

    def _lease(self, node: str) -> dict[str, Any]:
        last = min(time.monotonic(), self.stopped.get(node, float("inf")))
        renewed = datetime.fromtimestamp(last - last % 10 + self.offsets[node], UTC)
        text = renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"metadata": {"name": node}, "spec": {"renewTime": text}}


def silent(nodes: list[str], leases: Leases) -> tuple[dict[str, str], float]:
    """What is said of these nodes, and how long that took."""
    started_at = time.monotonic()
    silent_names = Heartbeats(cast(Cluster, leases)).silent_nodes(nodes, lambda _: None)
    return silent_names, time.monotonic() - started_at


def test_kubelets_that_report_cost_no_time() -> None:
    assert silent(["a", "b"], Leases({"a": 0, "b": 3}, {})) == ({}, 0)


def test_a_stopped_kubelet_is_told_with_the_time_since() -> None:
    silent_names, elapsed = silent(["a", "b"], Leases({"a": 0, "b": 0}, {"b": NOW - 40}))
    assert silent_names == {"b": "the kubelet of b has not reported for 56 s"}
    assert elapsed < 20


def test_a_clock_that_is_behind_is_no_stopped_kubelet() -> None:
    silent_names, elapsed = silent(["a"], Leases({"a": -3600}, {}))
    assert silent_names == {}
    assert 0 < elapsed <= 12


def test_a_node_without_a_lease_has_never_reported() -> None:
    assert "no Lease" in silent(["x"], Leases({}, {}))[0]["x"]


def test_no_pod_goes_to_a_node_whose_kubelet_is_down() -> None:
    cluster, messages = FakeCluster(stopped={"gpu2": NOW - 30}), list[str]()
    findings = list(run(cluster, LONG, messages).findings)
    failed = only(findings, "fail")
    assert (failed.node, failed.link) == ("gpu2", "allocatable")
    assert "the kubelet of gpu2 has not reported" in failed.detail
    assert "journalctl -u kubelet" in failed.remedy
    on = {pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] for pod in cluster.created}
    assert on == {"gpu1"}
    assert {item.detail for item in of(findings, "not_covered", "workload")} == {failed.detail}
    assert time.monotonic() - NOW < 60
    assert "waiting for the kubelet of gpu2 to report" in messages


def test_a_kubelet_that_stops_meanwhile_ends_the_wait_for_its_pods() -> None:
    cluster = FakeCluster(stopped={"gpu2": NOW})
    failed = of(list(run(cluster, LONG).findings), "fail")
    assert {item.node for item in failed} == {"gpu2"}
    assert all("kubelet of gpu2 has not reported" in item.detail for item in failed)
    assert "allocatable" in {item.link for item in failed}
    assert time.monotonic() - NOW < 60


class Dead(FakeCluster):
    """gpu2 goes down when its pods have begun: they stay "Running", and nobody hands out logs."""

    def _create_pod(self, body: dict[str, Any]) -> dict[str, Any]:
        self.stopped = {}
        created_pod = super()._create_pod(body)
        self.stopped = {"gpu2": NOW}
        return created_pod

    def _log(self, name: str, container: str) -> str:
        if "gpu2" in name:
            time.sleep(20)
            raise ClusterError("GET log: no answer within 20 s")
        return super()._log(name, container)


def test_a_node_that_goes_down_costs_no_wait_for_the_log_of_each_of_its_pods() -> None:
    failed = of(list(run(Dead(), LONG).findings), "fail")
    assert {item.node for item in failed} == {"gpu2"}
    assert all("kubelet of gpu2 has not reported" in item.detail for item in failed)
    assert time.monotonic() - NOW < 80


@pytest.mark.parametrize("text", ["", "yesterday"])
def test_a_renewal_that_is_no_time_is_none(text: str) -> None:
    class Unreadable(Leases):
        def json(self, path: str) -> Any:
            return {"items": [{"metadata": {"name": "a"}, "spec": {"renewTime": text}}]}

    assert "no Lease" in silent(["a"], Unreadable({"a": 0}, {}))[0]["a"]
