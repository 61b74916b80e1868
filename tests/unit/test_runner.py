"""The runner against a cluster that behaves: what it takes, what it leaves, what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.monitoring.stack_objects import ExpectedObjects, ObservedObjects
from gpuboot.verify import pod_feed, workload
from gpuboot.verify.collector import MetricsCollector
from gpuboot.verify.findings import verdict
from gpuboot.verify.metrics_wait import settle_s
from gpuboot.verify.pod_feed import PodFeed
from gpuboot.verify.runner import VerificationResult, simulated, verify
from tests.unit.evidence import SIZES, host, of, uuid
from tests.unit.fake_cluster import FakeCluster

HOSTS = [host(name, count) for name, count in SIZES.items()]
SETTINGS = parse_settings({"monitoring": {"grafana": False}, "verify": {"timeout_s": 10}})


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that passes only by sleeping."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", sleep)

    def wait(feed: PodFeed, seconds: float) -> None:
        sleep(seconds)
        feed._logs.clear()
        feed._read()

    def follow(feed: PodFeed, key: tuple[str, str]) -> None:
        with suppress(ClusterError):
            feed._read_log(key)

    class Immediate:
        def __init__(self, target: Callable[..., None], args: Any = (), daemon: bool = False):
            self.start = lambda: target(*args)

    # pods are looked at when time has passed; tests/unit/test_pod_feed.py has the watch
    monkeypatch.setattr(pod_feed, "Thread", Immediate)
    monkeypatch.setattr(PodFeed, "wait", wait)
    monkeypatch.setattr(PodFeed, "_watch", lambda _: None)
    monkeypatch.setattr(PodFeed, "_follow", follow)


def run(
    cluster: FakeCluster, settings: Settings = SETTINGS, messages: list[str] | None = None
) -> VerificationResult:
    lines: list[str] = [] if messages is None else messages
    return verify(cast(Cluster, cluster), list(SIZES), lambda: HOSTS, settings, lines.append)


def requested_gpus(cluster: FakeCluster) -> dict[str, list[int]]:
    """Node -> how many GPUs the containers of its pods asked for."""
    by_node: dict[str, list[int]] = {}
    for pod in cluster.created:
        node = pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]
        limits = [container["resources"]["limits"] for container in pod["spec"]["containers"]]
        by_node.setdefault(node, []).extend(int(item["nvidia.com/gpu"]) for item in limits)
    return by_node


def test_six_free_gpus_are_proven_and_nothing_is_left() -> None:
    cluster, messages = FakeCluster(), list[str]()
    proof = run(cluster, messages=messages)
    assert verdict(proof.findings) == "proven"
    assert (cluster.pods, cluster.placed, cluster.lease) == ({}, {}, None)
    assert list(cluster.namespaces.values()) == ["Terminating"]
    assert "vectorAdd: 6 of 6 GPUs passed, 1.0 s" in messages
    assert proof.versions["kubelet"] == "v1.36.3"
    assert set(proof.evidence.durations) == {"read cluster", "workload", "metrics", "cleanup"}


def test_what_fires_is_read_beside_the_proof() -> None:
    proof = run(FakeCluster())
    (alert,) = proof.evidence.metrics.alerts or ()
    assert (alert.name, alert.gpu_uuid) == ("GPUMemoryHot", uuid("gpu1", 0))
    assert verdict(proof.findings) == "proven"


@pytest.mark.parametrize("error", ["", "no answer"])
def test_what_stands_beside_the_charts_is_read_where_it_is_asked_for(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed_objects = ObservedObjects({}, ())

    def observed(_: MetricsCollector) -> ObservedObjects:
        if error:
            raise ClusterError(error)
        return observed_objects

    monkeypatch.setattr(MetricsCollector, "observed_objects", observed)
    cluster = cast(Cluster, FakeCluster())
    expected = ExpectedObjects(objects={})
    messages: list[str] = []
    hosts, names = HOSTS, list(SIZES)
    evidence = verify(
        cluster, names, lambda: hosts, SETTINGS, messages.append, lambda: expected
    ).evidence
    assert (evidence.observed_objects, evidence.objects_error) == (
        None if error else observed_objects,
        error,
    )


def test_only_free_gpus_are_taken() -> None:
    cluster = FakeCluster(gpu_holders={("gpu2", 1): "ml/train-0"})
    proof = run(cluster)
    assert requested_gpus(cluster) == {"gpu1": [1, 1], "gpu2": [1, 2]}
    open_ = of(list(proof.findings), "not_covered")
    assert [(f.link, f.gpu_uuid) for f in open_] == [("workload", uuid("gpu2", 1))]
    assert "ml/train-0" in open_[0].detail
    assert verdict(proof.findings) == "not_covered"


def test_a_cordoned_node_gets_no_pod() -> None:
    cluster = FakeCluster(cordoned={"gpu2"})
    proof = run(cluster)
    assert {p["spec"]["nodeSelector"]["kubernetes.io/hostname"] for p in cluster.created} == {
        "gpu1"
    }
    assert "cordoned" in of(list(proof.findings), "not_covered", "workload")[0].detail


def test_a_failed_computation_is_told_with_its_log() -> None:
    cluster = FakeCluster(faults={("gpu1", 1): "Failed to launch vectorAdd kernel\nTest FAILED\n"})
    failed = of(list(run(cluster).findings), "fail")
    assert [(f.link, f.gpu_uuid) for f in failed] == [("workload", uuid("gpu1", 1))]
    assert "Test FAILED" in failed[0].detail


def test_missing_attribution_fails_after_waiting_with_progress() -> None:
    cluster, messages = FakeCluster(attribute=False), list[str]()
    failed = of(list(run(cluster, messages=messages).findings), "fail")
    assert {f.link for f in failed} == {"attribution"}
    assert len(failed) == 6
    assert any("waiting for gpu1 attribution" in line for line in messages)


def test_names_of_a_pod_that_just_ended_are_waited_for() -> None:
    cluster, messages = FakeCluster(stale={("gpu1", 0): "ml/gone"}, stale_reads=2), list[str]()
    assert verdict(run(cluster, messages=messages).findings) == "proven"
    assert messages.count("waiting until GPU series no longer name ml/gone") == 1


def test_leftovers_of_a_killed_run_are_removed_first() -> None:
    cluster = FakeCluster(
        namespaces={"gpuboot-verify-dead00": "Active"}, pods={"vectoradd-gpu1": {}}
    )
    cluster.placed["gpu1", 0] = ("vectoradd-gpu1", "vectoradd-0")
    proof = run(cluster)
    assert verdict(proof.findings) == "proven"
    assert requested_gpus(cluster) == {"gpu1": [1, 1], "gpu2": [1, 3]}


def test_pods_are_removed_when_verification_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workload.Workload, "wait", stop)
    with pytest.raises(KeyboardInterrupt):
        run(cluster)
    assert (cluster.pods, cluster.lease) == ({}, None)
    assert list(cluster.namespaces.values()) == ["Terminating"]


def test_without_monitoring_nothing_asks_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()

    def refuse(*_: Any) -> None:
        raise AssertionError("Prometheus was asked")

    monkeypatch.setattr(cluster, "_prometheus", refuse)
    proof = run(cluster, parse_settings({"monitoring": {"enabled": False}}))
    assert verdict(proof.findings) == "proven"


@pytest.mark.parametrize("fault", ["unlisted", "unstartable"])
def test_a_gpu_that_spoils_its_container_is_told_apart_and_the_others_are_proven(
    fault: str,
) -> None:
    cluster, messages = FakeCluster(), list[str]()
    getattr(cluster, fault).add(("gpu2", 2))
    findings = list(run(cluster, messages=messages).findings)
    failed = of(findings, "fail")
    assert [(item.node, item.link) for item in failed] == [("gpu2", "workload")]
    expected = "GPU is lost" if fault == "unlisted" else "CreateContainerError: no device"
    assert expected in failed[0].detail
    passed = {item.gpu_uuid for item in of(findings, "pass", "workload")}
    assert passed == {uuid(name, i) for name, n in SIZES.items() for i in range(n)} - {
        uuid("gpu2", 2)
    }
    assert requested_gpus(cluster) == {"gpu1": [1, 1], "gpu2": [1, 3, 1, 1, 1, 1]}
    assert any("gpu2: " in line and "in a pod of its own" in line for line in messages)
    assert (cluster.pods, cluster.placed) == ({}, {})


def test_a_container_that_sees_gpus_of_others_fails() -> None:
    failed = of(list(run(FakeCluster(leaky={"gpu2"})).findings), "fail", "workload")
    assert {item.node for item in failed} == {"gpu2"}
    assert len(failed) == 4
    assert "requested 1 nvidia.com/gpu and saw 4 devices" in failed[0].detail
    assert "sees GPUs that it was not given" in failed[0].remedy


def test_what_prometheus_stored_before_saves_waiting_for_its_next_sample() -> None:
    stored = {(name, i): 1795353000.0 for name, n in SIZES.items() for i in range(n)}
    cluster = FakeCluster(stored=stored)
    started_at = time.monotonic()
    findings = list(run(cluster).findings)
    assert verdict(findings) == "proven"
    assert time.monotonic() - started_at < 3
    details = {item.detail.partition("; ")[2] for item in of(findings, "pass", "attribution")}
    assert len(details) == 1
    assert details.pop().startswith("Prometheus stored such a name at 2026-11-22T")


def test_what_was_stored_under_another_configuration_saves_nothing() -> None:
    before = datetime(2026, 11, 22, 11, 59, 59, tzinfo=UTC).timestamp()
    stored = {(name, i): before for name, n in SIZES.items() for i in range(n)}
    failed = of(list(run(FakeCluster(stored=stored)).findings), "fail")
    assert {item.link for item in failed} == {"attribution"}


def test_waiting_follows_the_periods_and_never_exceeds_the_timeout() -> None:
    assert settle_s(parse_settings({})) == 90
    assert settle_s(parse_settings({"exporter": {"scrape_interval": "40s"}})) == 240
    assert settle_s(SETTINGS) == 10


def test_what_says_it_is_simulated_is_quoted() -> None:
    assert len(simulated(HOSTS)) == 1
    assert simulated([host(driver_text="NVRM version: NVIDIA UNIX Open Kernel Module")]) == ()
