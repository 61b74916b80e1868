"""The proof of one node that is cordoned, against a cluster that behaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from gpuboot.cluster.api import Cluster
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.verify import node_proof
from gpuboot.verify.findings import Finding
from tests.unit.evidence import SIZES, host, uuid
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import SETTINGS, clock

__all__ = ["clock"]

NODE = next(name for name, count in SIZES.items() if count > 1)


def prove(
    cluster: FakeCluster, settings: Settings = SETTINGS, shared_now: bool = False
) -> Sequence[Finding]:
    node_host = host(NODE, SIZES[NODE])
    return node_proof.prove(
        cast(Cluster, cluster), NODE, lambda: node_host, settings, lambda _: None, shared_now
    )


def test_a_cordoned_node_is_proven_past_the_scheduler() -> None:
    cluster = FakeCluster(cordoned={NODE})
    findings = prove(cluster)
    assert node_proof.unproven(findings) == []
    passed = {
        item.gpu_uuid for item in findings if (item.link, item.status) == ("workload", "pass")
    }
    assert passed == {uuid(NODE, index) for index in range(SIZES[NODE])}
    assert {pod["spec"]["nodeName"] for pod in cluster.created} == {NODE}
    assert not cluster.pods
    assert cluster.lease is None


def test_a_gpu_that_computes_wrong_is_named() -> None:
    cluster = FakeCluster(cordoned={NODE}, faults={(NODE, 0): "Result verification failed"})
    failures = node_proof.unproven(prove(cluster))
    assert failures
    assert f"vectorAdd by UUID {uuid(NODE, 0)}: " in node_proof.cause(failures)
    assert not cluster.pods


def test_gpus_that_pods_hold_are_not_waited_for() -> None:
    cluster = FakeCluster(cordoned={NODE}, gpu_holders={(NODE, 0): "ml/train"})
    findings = prove(cluster)
    assert node_proof.unproven(findings) == []
    [uncovered] = [item for item in findings if item.status == "not_covered"]
    assert "ml/train" in uncovered.detail


def test_a_node_has_to_offer_its_gpus_again() -> None:
    cluster = FakeCluster(cordoned={NODE}, not_offered={NODE: 1})
    failures = node_proof.unproven(prove(cluster))
    assert node_proof.cause(failures).startswith("allocatable GPUs = inventory")
    assert cluster.created == []


@pytest.mark.parametrize("shared_now", [False, True])
def test_a_node_whose_sharing_changes_later_is_proven_as_it_is_shared(shared_now: bool) -> None:
    data = {"gpu_operator": {"time_slices": 4}, "verify": {"timeout_s": 10}}
    labels = {"nvidia.com/gpu.replicas": "1", "nvidia.com/mig-1g.10gb.replicas": "0"}
    cluster = FakeCluster(cordoned={NODE}, labels=labels)
    failures = node_proof.unproven(prove(cluster, parse_settings(data), shared_now))
    assert bool(failures) is not shared_now


def test_without_a_device_plugin_the_operating_system_decides() -> None:
    cluster = FakeCluster(without_plugin={NODE})
    assert node_proof.unproven(prove(cluster)) == []
    assert cluster.created == []


@pytest.mark.parametrize("lease_held", [False, True])
def test_another_verification_is_waited_for(lease_held: bool) -> None:
    settings = parse_settings({"verify": {"timeout_s": 10}})
    assert settings.verify.timeout_s == SETTINGS.verify.timeout_s
    spec = {"holderIdentity": "other", "acquireTime": "t", "renewTime": "2999-01-01T00:00:00Z"}
    cluster = FakeCluster(lease={"spec": spec} if lease_held else None)
    failures = node_proof.unproven(prove(cluster))
    assert bool(failures) is lease_held
    if lease_held:
        assert "another verification, other" in node_proof.cause(failures)
