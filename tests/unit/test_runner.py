"""The runner against a cluster that behaves: what it takes, what it leaves, what it waits for."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kubernetes.client import V1Pod

from gpuboot.config.settings import Settings, parse_settings
from gpuboot.kubernetes.api import Cluster, ClusterError
from gpuboot.verify import runner, workload
from gpuboot.verify.collector import MetricsCollector
from gpuboot.verify.evidence import ExpectedObjects, GpuPod, ObservedObjects
from gpuboot.verify.findings import verdict
from gpuboot.verify.runner import VerificationResult, settle_s, simulated, verify
from gpuboot.verify.session import pod_name
from tests.unit.evidence import SIZES, host, node, of, uuid
from tests.unit.fake_cluster import FakeCluster

HOSTS = [host(name, count) for name, count in SIZES.items()]
SETTINGS = parse_settings({"monitoring": {"grafana": False}, "verify": {"timeout_s": 10}})


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that passes only by sleeping."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    for module in (runner, workload):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(module.time, "sleep", sleep)


def run(
    cluster: FakeCluster, settings: Settings = SETTINGS, said: list[str] | None = None
) -> VerificationResult:
    lines: list[str] = [] if said is None else said
    return verify(cast(Cluster, cluster), HOSTS, settings, lines.append)


def test_six_free_gpus_are_proven_and_nothing_is_left() -> None:
    cluster, said = FakeCluster(), list[str]()
    proof = run(cluster, said=said)
    assert verdict(proof.findings) == "proven"
    assert (cluster.pods, cluster.placed, cluster.lease) == ({}, {}, None)
    assert list(cluster.namespaces.values()) == ["Terminating"]
    assert "vectorAdd: 6 of 6 pods passed, 0 s" in said
    assert proof.versions["kubelet"] == "v1.36.3"
    assert set(proof.evidence.durations) == {"before", "workload", "metrics", "cleanup"}


def test_what_fires_is_read_beside_the_proof() -> None:
    proof = run(FakeCluster())
    (alert,) = proof.evidence.metrics.alerts or ()
    assert (alert.name, alert.gpu_uuid) == ("GPUMemoryHot", uuid("gpu1", 0))
    assert verdict(proof.findings) == "proven"


@pytest.mark.parametrize("error", ["", "no answer"])
def test_what_stands_beside_the_charts_is_read_where_it_is_asked_for(
    error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ObservedObjects({}, ())

    def observed(_: MetricsCollector) -> ObservedObjects:
        if error:
            raise ClusterError(error)
        return found

    monkeypatch.setattr(MetricsCollector, "observed_objects", observed)
    cluster = cast(Cluster, FakeCluster())
    expected = ExpectedObjects(objects={})
    said: list[str] = []
    evidence = verify(cluster, HOSTS, SETTINGS, said.append, expected).evidence
    assert (evidence.observed_objects, evidence.objects_error) == (None if error else found, error)


def test_only_free_gpus_are_taken() -> None:
    cluster = FakeCluster(gpu_holders={("gpu2", 1): "ml/train-0"})
    proof = run(cluster)
    assert len(cluster.created) == 5
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
    cluster, said = FakeCluster(attribute=False), list[str]()
    failed = of(list(run(cluster, said=said).findings), "fail")
    assert {f.link for f in failed} == {"attribution"}
    assert len(failed) == 6
    assert any("waiting for gpu1 attribution" in line for line in said)


def test_names_of_a_pod_that_just_ended_are_waited_for() -> None:
    cluster, said = FakeCluster(stale={("gpu1", 0): "ml/gone"}, stale_reads=2), list[str]()
    assert verdict(run(cluster, said=said).findings) == "proven"
    assert said.count("waiting until GPU series no longer name ml/gone") == 2


def test_leftovers_of_a_killed_run_are_removed_first() -> None:
    cluster = FakeCluster(
        namespaces={"gpuboot-verify-dead00": "Active"}, pods={"vectoradd-gpu1-0": {}}
    )
    cluster.placed["vectoradd-gpu1-0"] = ("gpu1", 0)
    proof = run(cluster)
    assert verdict(proof.findings) == "proven"
    assert len(cluster.created) == 6


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


def test_the_pod_takes_one_gpu_and_no_privilege_and_ends_by_itself() -> None:
    settings = parse_settings({"runtime": {"mode": "runtimeclass"}, "verify": {"timeout_s": 300}})
    pod = workload.pod_manifest("p", node("gpu1", 2), settings)["spec"]
    container = pod["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "nvidia-smi -L && /cuda-samples/vectorAdd" in container["command"][2]
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["activeDeadlineSeconds"] == 420
    V1Pod.model_validate(
        workload.pod_manifest("p", node("gpu1", 2), settings)
    )  # the client is strict
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu1"}
    assert "runtimeClassName" not in workload.pod_manifest("p", node("gpu1", 2), SETTINGS)["spec"]


def test_nodes_whose_long_names_differ_at_the_end_have_pods_of_their_own() -> None:
    nodes = [f"gke-training-production-europe-west4-pool-a3-{number}.c" for number in range(2)]
    names = {pod_name("vectoradd", node, 0) for node in nodes}
    assert len(names) == 2
    assert all("." not in name for name in names)


def test_a_taint_that_the_pods_do_not_tolerate_keeps_them_away() -> None:
    plan = workload.plan_pods(
        ("gpu1",), {"gpu1": node("gpu1", 2)}, (), {"gpu1": "team=ml:NoSchedule"}
    )
    assert plan.skipped_nodes == {"gpu1": "the node has the taint team=ml:NoSchedule"}
    assert plan.total == 0


def test_waiting_follows_the_periods_and_never_exceeds_the_timeout() -> None:
    assert settle_s(parse_settings({})) == 90
    assert settle_s(parse_settings({"exporter": {"interval_ms": 60000}})) == 225
    assert settle_s(SETTINGS) == 10


def test_what_says_it_is_simulated_is_quoted() -> None:
    assert len(simulated(HOSTS)) == 1
    assert simulated([host(driver_text="NVRM version: NVIDIA UNIX Open Kernel Module")]) == ()


def test_each_free_mig_device_gets_a_pod_that_asks_for_it_by_name() -> None:
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
    mixed = node("gpu1", 1, mig={small: 4, large: 1})
    held = GpuPod(namespace="ml", name="infer-0", node="gpu1", gpus=0, mig={small: 1, large: 1})
    chosen = workload.plan_pods(("gpu1",), {"gpu1": mixed}, (held,), {})
    assert chosen.pods == {"gpu1": {"nvidia.com/gpu": 1, small: 3}}
    assert chosen.total == 4
    pod = workload.pod_manifest("p", mixed, SETTINGS, small)
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {small: "1"}}
