"""The link isolation: a pod without a GPU request that asks in every way it can."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kubernetes.client import V1Pod

from gpuboot.cluster.api import Cluster
from gpuboot.config.settings import parse_settings
from gpuboot.verify import isolation_probe
from gpuboot.verify.checks import isolation, kubernetes_checks
from gpuboot.verify.evidence import IsolationResult
from gpuboot.verify.findings import Finding, verdict
from gpuboot.verify.isolation_probe import ANNOTATION, VOLUME, IsolationProbe, ways
from gpuboot.verify.levels import left_out
from gpuboot.verify.session import Session
from tests.unit.evidence import SIZES, evidence, host, node, of, only, uuid, workload_result
from tests.unit.fake_cluster import FakeCluster
from tests.unit.test_runner import clock, run

__all__ = ["clock"]

ALL = "NVIDIA_VISIBLE_DEVICES=all"
NONE_SEEN: dict[str, tuple[str, ...]] = {way.name: () for way in ways(uuid("gpu1", 0))}


def evaluate(devices: dict[str, tuple[str, ...]], **fields: Any) -> Finding:
    """What is found on gpu1 when its pod's containers saw these devices."""
    result = IsolationResult(node="gpu1", pod="isolation-gpu1", devices=devices, **fields)
    observed = evidence(isolation_results=(result,))
    [finding] = isolation.evaluate(observed.hosts[0], observed)
    return finding


def test_no_device_in_any_way_passes() -> None:
    finding = evaluate(NONE_SEEN)
    assert (finding.status, finding.link, finding.node) == ("pass", "isolation", "gpu1")
    assert all(name in finding.detail for name in NONE_SEEN)


@pytest.mark.parametrize(
    ("leaks", "remedy"),
    [
        ([ALL], "accept-nvidia-visible-devices-envvar-when-unprivileged = false"),
        (["NVIDIA_VISIBLE_DEVICES=none"], "accept-nvidia-visible-devices-envvar-when-unprivileged"),
        ([ALL, VOLUME], "accept-nvidia-visible-devices-envvar-when-unprivileged = false"),
        ([VOLUME], "accept-nvidia-visible-devices-as-volume-mounts = false"),
        (list(NONE_SEEN), "`pod_annotations` for cdi.k8s.io"),
    ],
)
def test_a_device_fails_with_the_remedy_of_its_way(leaks: list[str], remedy: str) -> None:
    devices = NONE_SEEN | dict.fromkeys(leaks, ("/dev/nvidia0", "/dev/nvidiactl"))
    finding = evaluate(devices)
    assert finding.status == "fail"
    assert finding.detail == (
        f"isolation-gpu1 sees /dev/nvidia0 /dev/nvidiactl by {', '.join(leaks)}"
    )
    assert remedy in finding.remedy
    assert "gpu1" in finding.remedy


def test_a_leak_counts_also_where_another_container_did_not_start() -> None:
    assert evaluate({ALL: ("/dev/nvidia0",)}, error="exit code 128").status == "fail"


def test_a_pod_without_an_answer_is_unknown_and_one_without_room_not_covered() -> None:
    finding = evaluate({ALL: ()}, error="exit code 128: no sh")
    assert (finding.status, finding.detail) == ("unknown", "isolation-gpu1: exit code 128: no sh")
    assert evaluate({}, error="Too many pods", unschedulable=True).status == "not_covered"


def manifest(settings: dict[str, Any], refused_fields: tuple[str, ...] = ()) -> dict[str, Any]:
    """The pod that is made on gpu1."""
    cluster = FakeCluster(rejected=refused_fields)
    session = Session(cast(Cluster, cluster), lambda _: None, 1)
    probe = IsolationProbe(session, parse_settings(settings))
    probe.start({"gpu1": node("gpu1", 2)}, [host()])
    [pod] = cluster.pods.values()
    pod_manifest = {name: pod[name] for name in ("metadata", "spec")}
    V1Pod.model_validate(pod_manifest)
    return pod_manifest


def test_the_pod_asks_in_every_way_and_has_no_request() -> None:
    pod_manifest = manifest({})
    variables = [
        {item["name"]: item["value"] for item in container["env"]}
        for container in pod_manifest["spec"]["containers"]
    ]
    values = [item["NVIDIA_VISIBLE_DEVICES"] for item in variables]
    assert values == [
        "all", "none", "0", "nvidia.com/gpu=all", uuid("gpu1", 0), "all", "void", "void",
    ]  # fmt: skip
    assert variables[5]["NVIDIA_DRIVER_CAPABILITIES"] == "all"
    assert pod_manifest["metadata"]["annotations"] == {"cdi.k8s.io/gpuboot": "nvidia.com/gpu=all"}
    [volume] = pod_manifest["spec"]["volumes"]
    assert volume["hostPath"]["path"] == "/dev/null"
    [mount] = pod_manifest["spec"]["containers"][-1]["volumeMounts"]
    assert mount["mountPath"] == "/var/run/nvidia-container-devices/all"
    assert not any("resources" in container for container in pod_manifest["spec"]["containers"])
    assert "runtimeClassName" not in pod_manifest["spec"], "nvidia is the default"


@pytest.mark.parametrize("mode", ["runtimeclass", "cdi"])
def test_where_nvidia_is_not_the_default_the_pod_asks_for_it(mode: str) -> None:
    settings = {
        "runtime": {"mode": mode},
        "gpu_operator": {"enabled": False},
        "exporter": {"kind": "chart"},
    }
    assert manifest(settings)["spec"]["runtimeClassName"] == "nvidia"
    pod_manifest = manifest(settings, refused_fields=('"runtimeClassName"',))
    assert "runtimeClassName" not in pod_manifest["spec"]
    assert "volumes" in pod_manifest["spec"]


def test_where_admission_refuses_host_paths_the_other_ways_are_tried() -> None:
    findings = list(run(FakeCluster(rejected=("hostPath",))).findings)
    assert verdict(findings) == "proven"
    passed = of(findings, "pass", "isolation")
    assert {item.node for item in passed} == set(SIZES)
    assert not any(VOLUME in item.detail for item in passed)
    assert all(ANNOTATION in item.detail for item in passed)


def test_a_refused_pod_is_unknown_and_ends_no_verification() -> None:
    findings = list(run(FakeCluster(rejected=("isolation-",))).findings)
    unknown = of(findings, "unknown")
    assert {(item.link, item.node) for item in unknown} == {("isolation", name) for name in SIZES}
    assert "forbidden" in unknown[0].detail


@pytest.mark.parametrize("way", ["all", "none", "0", "nvidia.com/gpu=all", uuid("gpu2", 0), "void"])
def test_verification_fails_where_one_node_is_open(way: str) -> None:
    findings = list(run(FakeCluster(exposed={"gpu2": way})).findings)
    failed = only(findings, "fail")
    assert (failed.link, failed.node) == ("isolation", "gpu2")
    assert [item.node for item in of(findings, "pass", "isolation")] == ["gpu1"]
    assert verdict(findings) == "failed"


def test_a_mounted_device_is_told_apart() -> None:
    failed = only(list(run(FakeCluster(exposed={"gpu1": "mounted"})).findings), "fail")
    assert "as-volume-mounts = false" in failed.remedy


def test_a_container_without_an_answer_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation_probe, "MARKER", "another image's words:")
    findings = list(run(FakeCluster()).findings)
    assert {item.link for item in of(findings, "unknown")} == {"isolation"}


def test_busy_and_cordoned_nodes() -> None:
    holders = {("gpu1", index): f"ml/train-{index}" for index in range(2)}
    findings = list(run(FakeCluster(gpu_holders=holders, cordoned={"gpu2"})).findings)
    assert [item.node for item in of(findings, "pass", "isolation")] == ["gpu1"]
    assert [item.node for item in of(findings, "not_covered", "isolation")] == ["gpu2"]


def test_the_level_quick_has_no_such_link() -> None:
    assert "isolation" in left_out("quick")
    assert "isolation" not in left_out("standard")


@pytest.mark.parametrize(
    ("result", "remedy"),
    [
        ({"uuids": (uuid("gpu1", 0), uuid("gpu1", 1))}, "hand them out by CDI"),
        ({"error": "log: sh: 1: nvidia-smi: not found", "uuids": ()}, "deviceListStrategy"),
        ({"error": "ImagePullBackOff", "uuids": ()}, "crictl pull"),
    ],
)
def test_what_a_pod_with_a_request_can_do_about_it(result: dict[str, Any], remedy: str) -> None:
    observed = evidence(workload_results=(workload_result("gpu1", 0, passed=False, **result),))
    finding = kubernetes_checks.workload(observed.hosts[0], observed, 1)[0]
    assert finding.status == ("unknown" if "crictl" in remedy else "fail")
    assert remedy in finding.remedy
