"""Allocatable GPUs and vectorAdd pods."""

from __future__ import annotations

from typing import Any

import pytest

from gpuboot.cluster.objects import Node
from gpuboot.cluster.pods import Pod
from gpuboot.verify.checks import kubernetes_checks as checks
from gpuboot.verify.findings import Finding
from tests.unit.evidence import evidence, node, of, only, uuid, workload_result

TRAIN = Pod(namespace="ml", name="train-0", node="gpu1", devices={"nvidia.com/gpu": 1})


def evaluate(slices: int = 1, **changed: Any) -> list[Finding]:
    observed = evidence(**changed)
    return checks.evaluate(observed.hosts[0], observed, slices)


def nodes(**gpu1: Any) -> dict[str, Node]:
    return {"gpu1": node("gpu1", **({"gpus": 2} | gpu1)), "gpu2": node("gpu2", 4)}


def test_all_gpus_offered_and_computed_on() -> None:
    findings = evaluate()
    assert {f.status for f in findings} == {"pass"}
    assert {f.gpu_uuid for f in of(findings, "pass", "workload")} == {
        uuid("gpu1", 0),
        uuid("gpu1", 1),
    }


@pytest.mark.parametrize(
    ("state", "detail"),
    [({}, "not a node of the cluster"), ({"gpu1": node("gpu1", 2, ready=False)}, "not Ready")],
)
def test_a_node_that_cannot_offer(state: dict[str, Node], detail: str) -> None:
    observed = evidence(nodes=state)
    assert detail in only(checks.allocatable(observed.hosts[0], observed, 1), "fail").detail


def test_without_the_operator_what_nobody_offers_is_no_failure() -> None:
    observed = evidence(nodes=nodes(gpus=0), workload_results=())
    findings = checks.evaluate(observed.hosts[0], observed, 1, operator=False)
    assert {item.status for item in findings} == {"not_covered"}
    assert {item.link for item in findings} == {"allocatable", "workload"}
    other_plugin = evidence(nodes=nodes(gpus=1), workload_results=(workload_result("gpu1", 0),))
    assert only(checks.evaluate(other_plugin.hosts[0], other_plugin, 1, operator=False), "fail")


def test_a_gpu_that_the_plugin_holds_back_is_named_by_the_pods_that_ran() -> None:
    findings = evaluate(nodes=nodes(gpus=1), workload_results=(workload_result("gpu1", 0),))
    failed = only(findings, "fail")
    assert (failed.link, failed.gpu_uuid) == ("allocatable", uuid("gpu1", 1))
    assert "1 of 2" in failed.detail
    assert "device plugin" in failed.remedy
    assert only(findings, "not_covered").link == "workload"


def test_with_other_pods_about_the_missing_gpu_has_no_name() -> None:
    findings = evaluate(nodes=nodes(gpus=1), workload_results=(), gpu_pods=(TRAIN,))
    assert only(findings, "fail").gpu_uuid is None


def test_a_pod_that_did_not_tell_its_gpu_leaves_the_missing_one_without_a_name() -> None:
    mute = workload_result("gpu1", 0, uuids=(), passed=False, error="ImagePullBackOff")
    findings = of(
        evaluate(nodes=nodes(gpus=1), workload_results=(mute, workload_result("gpu1", 1))),
        "fail",
        "allocatable",
    )
    assert [(item.gpu_uuid, "1 of 2" in item.detail) for item in findings] == [(None, True)]


def test_more_gpus_than_promised_fail() -> None:
    assert "correct the inventory" in only(evaluate(nodes=nodes(gpus=3)), "fail").remedy


def test_time_slices_multiply_the_offer() -> None:
    findings = evaluate(slices=4, nodes=nodes(gpus=8))
    assert len(of(findings, "pass", "allocatable")) == 2


def test_a_busy_gpu_is_not_covered_and_its_holder_named() -> None:
    findings = evaluate(workload_results=(workload_result("gpu1", 0),), gpu_pods=(TRAIN,))
    busy = only(findings, "not_covered")
    assert busy.gpu_uuid == uuid("gpu1", 1)
    assert "ml/train-0" in busy.detail


def test_a_cordoned_node_is_not_covered() -> None:
    findings = evaluate(workload_results=(), skipped_nodes={"gpu1": "the node is cordoned"})
    assert [f.detail for f in of(findings, "not_covered", "workload")] == [
        "the node is cordoned"
    ] * 2


def test_a_pod_that_no_node_took_is_not_covered() -> None:
    waiting = workload_result(
        "gpu1", 1, uuids=(), passed=False, error="0/3 nodes", unschedulable=True
    )
    findings = evaluate(workload_results=(workload_result("gpu1", 0), waiting))
    assert "0/3 nodes" in only(findings, "not_covered").detail


def test_a_computation_that_fails_names_its_gpu() -> None:
    broken = workload_result("gpu1", 1, passed=False, error="exit code 1: Error; log: Test FAILED")
    failed = only(evaluate(workload_results=(workload_result("gpu1", 0), broken)), "fail")
    assert failed.gpu_uuid == uuid("gpu1", 1)
    assert "Test FAILED" in failed.detail
    assert failed.remedy.startswith("drain the node")
    assert f"--gpu-reset -i {uuid('gpu1', 1)}" in failed.remedy
    assert "event" not in failed.remedy


def test_a_pod_that_fails_before_it_tells_its_gpu_leaves_it_unknown() -> None:
    broken = workload_result("gpu1", 1, uuids=(), passed=False, error="CreateContainerError")
    findings = evaluate(workload_results=(workload_result("gpu1", 0), broken))
    assert only(findings, "fail").gpu_uuid is None
    assert only(findings, "unknown").gpu_uuid == uuid("gpu1", 1)


def test_an_image_that_is_not_pulled_tells_nothing_of_a_gpu() -> None:
    error = 'ErrImagePull: failed to pull "cuda-sample": 429 Too Many Requests'
    broken = workload_result("gpu1", 1, uuids=(), passed=False, error=error)
    findings = evaluate(workload_results=(workload_result("gpu1", 0), broken))
    assert not of(findings, "fail")
    unknown = of(findings, "unknown", "workload")
    assert {item.gpu_uuid for item in unknown} == {None, uuid("gpu1", 1)}
    assert all("settings.registries" in item.remedy for item in unknown)


def test_a_pod_that_sees_more_than_its_gpu_fails() -> None:
    greedy = workload_result("gpu1", 0, uuids=(uuid("gpu1", 0), uuid("gpu1", 1)))
    failed = of(evaluate(workload_results=(greedy, workload_result("gpu1", 1))), "fail")
    assert "saw 2" in failed[0].detail
    assert "not given" in failed[0].remedy


def test_one_gpu_given_to_two_pods_fails_unless_shared() -> None:
    twice = (workload_result("gpu1", 0), workload_result("gpu1", 0, pod="vectoradd-gpu1-1"))
    assert {f.gpu_uuid for f in of(evaluate(workload_results=twice), "fail")} == {uuid("gpu1", 0)}
    shared = evaluate(slices=2, nodes=nodes(gpus=4), workload_results=twice)
    assert of(shared, "fail") == []
    assert "are shared" in only(shared, "not_covered").detail


def test_a_gpu_of_another_machine_fails() -> None:
    findings = evaluate(
        workload_results=(
            workload_result("gpu1", 0),
            workload_result("gpu1", 1, uuids=(uuid("gpu2", 3),)),
        )
    )
    assert "which the host lacks" in only(findings, "fail").detail
