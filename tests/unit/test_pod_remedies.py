"""What is said of a pod that failed: about its cause, and never about what verify has removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.docker import docker_checks as docker
from gpuboot.verify.checks import kubernetes_checks, proof_chain
from gpuboot.verify.evidence import IsolationResult, ServiceProbeResult
from tests.unit.evidence import evidence, of, uuid, workload_result
from tests.unit.test_verdict import STANDARD


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("vectorAdd ended with 1: Result verification failed at element 25000!", "drain the node"),
        ("vectorAdd ended with 1: Failed to copy vector C from device to host (error code "
         "uncorrectable ECC error encountered)!", "drain the node"),
        ("vectorAdd ended with 1: Failed to launch vectorAdd kernel (error code unspecified launch "
         "failure)!", "drain the node"),
        ("Failed to allocate device vector A (error code CUDA driver version is insufficient for "
         "CUDA runtime version)!", "set verify.image"),
        ("Failed to allocate device vector A (error code system not yet initialized)!",
         "fabricmanager"),
        ("ImagePullBackOff: Back-off pulling image", "crictl pull"),
        ('ImagePullBackOff: Back-off pulling image "r.example/cuda-sample": ErrImagePull: failed '
         "to do request: Head ...: tls: failed to verify certificate: x509: certificate signed by "
         "unknown authority", "settings.mirrors.ca_bundle"),
        ("CreateContainerError: no such device", "journalctl -u kubelet -u containerd"),
    ],
)  # fmt: skip
def test_the_remedy_is_about_the_cause(error: str, remedy: str) -> None:
    bad = workload_result("gpu1", 0, passed=False, error=error)
    observed = evidence(workload_results=(bad,))
    finding = of(kubernetes_checks.workload(observed.hosts[0], observed, 1), "fail")[0]
    assert remedy in finding.remedy
    assert "kubectl -n gpuboot-verify" not in finding.remedy
    if remedy.startswith("drain"):
        for text in ("Xid", "ECC", "--gpu-reset", "replaced"):
            assert text in finding.remedy


def test_a_gpu_of_a_docker_host_that_computes_wrong() -> None:
    bad = workload_result("gpu1", 0, passed=False, error="Result verification failed")
    observed = evidence(workload_results=(replace(bad, pod=uuid("gpu1", 0)),))
    finding = of(docker.workload(observed.hosts[0], observed), "fail")[0]
    assert finding.remedy.startswith("stop the host's containers")
    assert "--gpu-reset" in finding.remedy


def test_no_remedy_points_at_events_that_are_gone() -> None:
    """Each way in which a pod of a verification gives no answer."""
    observed = evidence(
        workload_results=(workload_result("gpu1", 0, passed=False, uuids=(), error="it failed"),),
        service_probes=(ServiceProbeResult(node="gpu1", pod="p", error="it failed"),),
        isolation_results=(IsolationResult(node="gpu1", pod="p", error="it failed"),),
    )
    findings = [item for item in proof_chain.evaluate(observed, STANDARD) if item.node == "gpu1"]
    remedies = [
        item.remedy for item in findings
        if item.link in ("workload", "services", "isolation") and item.status != "pass"
    ]  # fmt: skip
    assert len(remedies) >= 3
    for remedy in remedies:
        assert "field-selector" not in remedy
        assert "removed by now" in remedy


def test_a_probe_whose_image_is_not_pulled_says_why() -> None:
    error = "ErrImagePull: unexpected status from HEAD request: 429 Too Many Requests"
    probe = ServiceProbeResult(node="gpu1", pod="p", error=error)
    findings = proof_chain.evaluate(evidence(service_probes=(probe,)), STANDARD)
    remedies = [item.remedy for item in findings if item.link == "services" and item.remedy]
    assert any("settings.registries" in remedy for remedy in remedies)


def test_a_node_that_no_probe_tried_is_not_covered() -> None:
    observed = evidence(service_probes=(), isolation_results=())
    findings = of(proof_chain.evaluate(observed, STANDARD), "not_covered")
    assert {(item.link, item.node) for item in findings} == {
        (link, node) for link in ("services", "isolation") for node in ("gpu1", "gpu2")
    }


def test_a_pod_that_tried_nothing_is_no_isolation() -> None:
    observed = evidence(isolation_results=(IsolationResult(node="gpu1", pod="p"),))
    (finding,) = [item for item in proof_chain.evaluate(observed, STANDARD)
                if (item.link, item.node) == ("isolation", "gpu1")]  # fmt: skip
    assert finding.status == "unknown"
