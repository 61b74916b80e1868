"""What is said of a pod that failed: about its cause, and never about what verify has removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuboot.docker import docker_checks as docker
from gpuboot.verify.checks import kubernetes_checks, pod_remedies, proof_chain
from gpuboot.verify.evidence import IsolationResult, ServiceProbeResult
from gpuboot.verify.gate_outcome import outcomes
from gpuboot.verify.session import OVERTAKEN
from tests.unit.evidence import evidence, of, uuid, workload_result
from tests.unit.reports import report
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
        ("vectorAdd ended with 127: sh: 1: /cuda-samples/vectorAdd: not found", "lacks a program"),
        ("vectorAdd ended with 126: sh: /cuda-samples/vectorAdd: Permission denied",
         "lacks a program"),
        ('exit code 128: exec: "sh": executable file not found in $PATH', "lacks a program"),
        ('exit code 128: exec: "nvidia-container-runtime": executable file not found in $PATH',
         "journalctl -u kubelet"),
        ("exit code 255: Error; log: exec /bin/sh: exec format error", "another processor"),
        ("exit code 137: OOMKilled", "too little memory"),
        ("vectorAdd ended with 137: Killed", "too little memory"),
        ("docker run ended with 137: ", "journalctl -u kubelet"),
        ("vectorAdd ended with 139: Segmentation fault", "CUDA gave up"),
        ("vectorAdd ended with 1: error code CUDA-capable device(s) is/are busy or unavailable",
         "none of Kubernetes'"),
        ("vectorAdd ended with 1: error code out of memory", "none of Kubernetes'"),
        ("vectorAdd ended with 1: error code MPS client failed to connect to the MPS control "
         "daemon or the MPS server", "mps-control-daemon"),
        ("the provided PTX was compiled with an unsupported toolchain", "older CUDA"),
        ("no kernel image is available for execution on the device", "other models"),
        ("exit code 18: Error; log: Failed to initialize NVML: Driver/library version mismatch",
         "reboot it"),
        ("docker run ended with 125: nvml error: driver/library version mismatch", "reboot it"),
        ("StartError: nvidia-container-cli: initialization error: nvml error: driver not loaded",
         "reboot it"),
        ("RunContainerError: failed to inject CDI devices: unresolvable CDI devices "
         "nvidia.com/gpu=GPU-1", "nvidia-ctk cdi generate"),
        ("CreateContainerError: failed to fulfil mount request: open libcuda.so.550.54.15: no such "
         "file or directory", "nvidia-ctk cdi generate"),
        ('failed to get sandbox runtime: no runtime for "nvidia" is configured', "deploys/site.py"),
    ],
)  # fmt: skip
def test_the_remedy_is_about_the_cause(error: str, remedy: str) -> None:
    bad = workload_result("gpu1", 0, passed=False, error=error)
    observed = evidence(workload_results=(bad,))
    finding = kubernetes_checks.workload(observed.hosts[0], observed, 1)[0]
    assert remedy in finding.remedy
    assert "kubectl -n gpuboot-verify" not in finding.remedy
    if remedy.startswith("drain"):
        for text in ("Xid", "ECC", "--gpu-reset", "replaced"):
            assert text in finding.remedy


def test_a_gpu_that_no_pod_told_of_has_the_remedy_of_what_stopped_its_pod() -> None:
    bad = workload_result("gpu1", 0, uuids=(), passed=False, error="exit code 137: OOMKilled")
    observed = evidence(workload_results=(bad, workload_result("gpu1", 1)))
    findings = kubernetes_checks.workload(observed.hosts[0], observed, 1)
    (failed,), (unknown,) = of(findings, "fail"), of(findings, "unknown")
    assert unknown.gpu_uuid == uuid("gpu1", 0)
    assert unknown.remedy == failed.remedy


def test_a_pod_that_was_taken_away_tells_nothing_of_its_gpu() -> None:
    """Someone's pod with a higher priority took its place: the gate closed a sound node."""
    for is_withdrawn, status in ((True, "unknown"), (False, "fail")):
        bad = workload_result(
            "gpu1", 0, uuids=(), passed=False, error="somebody deleted the pod",
            withdrawn=is_withdrawn,
        )  # fmt: skip
        observed = evidence(workload_results=(bad, *evidence().workload_results[1:]))
        result = report(observed)
        assert result.exit == (2 if is_withdrawn else 1)
        assert [row.status for row in result.gpus].count("pass") == 5
        states = {f.status for f in result.findings if f.link == "workload"}
        assert states == {"pass", "unknown", status}
        actions = {outcome[1]: outcome[0] for outcome in outcomes(observed, result.findings)}
        assert actions == {"gpu2": "open"} if is_withdrawn else {"gpu1": "close", "gpu2": "open"}


@pytest.mark.parametrize(
    ("reason", "detail", "remedy"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", "no room for a pod: 0/3", "make room"),
        (pod_remedies.NOT_CONSIDERED, "the scheduler has not", "component=kube-scheduler"),
        (OVERTAKEN, "another verification took over", "verify again"),
    ],
)
def test_why_no_node_took_a_pod(reason: str, detail: str, remedy: str) -> None:
    text, action = pod_remedies.unscheduled(reason, "gpu1")
    assert text.startswith(detail)
    assert remedy in action


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
