"""What collected objects say of each requirement of AI conformance, for it and against it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.conformance.ai import (
    accelerator_metrics,
    access,
    gateway,
    kueue,
    pod_scaling,
    served,
    service,
)
from gpuboot.conformance.ai.access import BYSTANDER, DRIVER_LABEL, END, Look, parse_log
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.verify.devices import GPU_RESOURCE
from gpuboot.verify.evidence import IsolationResult
from gpuboot.verify.prometheus import Sample
from tests.unit.evidence import node, uuid

FIRST, SECOND = uuid("gpu1", 0), uuid("gpu1", 1)
HOLDER = Look("gpu1", "access-gpu1-0", resource=GPU_RESOURCE, uuids=(FIRST,), driver="580.95.05")
PEER = replace(HOLDER, pod="access-gpu1-1", uuids=(SECOND,))
OUTSIDER = Look("gpu1", "access-gpu1-0", BYSTANDER)
CLOSED = IsolationResult(node="gpu1", pod="isolation-gpu1", devices={"all": ()})
LOG = f"""\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: {FIRST})
driver 580.95.05
device /dev/nvidia0
device /dev/nvidiactl
{END}
"""


def test_a_log_is_read_whole_or_not_at_all() -> None:
    silent = Look("gpu1", "access-gpu1-0", resource=GPU_RESOURCE, error="it printed nothing")
    assert parse_log(silent, LOG.removesuffix(f"{END}\n")) == silent
    devices = ("/dev/nvidia0", "/dev/nvidiactl")
    assert parse_log(silent, LOG) == replace(HOLDER, devices=devices)


def test_an_image_without_the_driver_sees_nothing_where_it_was_given_nothing() -> None:
    log = f"sh: 1: nvidia-smi: not found\ndriver \n{END}\n"
    assert parse_log(OUTSIDER, log) == OUTSIDER


def test_access_is_evidenced_when_each_sees_its_own_and_others_nothing() -> None:
    result = access.evaluate_access([CLOSED], [HOLDER, PEER, OUTSIDER])
    assert result.status == "pass"
    assert f"gpu1: {HOLDER.pod}/holder, given one {GPU_RESOURCE}, sees {FIRST}" in str(result)


@pytest.mark.parametrize(
    ("probe", "looks", "status", "word"),
    [
        (replace(CLOSED, devices={"all": ("/dev/nvidia0",)}), [HOLDER, OUTSIDER], "fail", "by all"),
        (CLOSED, [HOLDER, replace(OUTSIDER, uuids=(FIRST,))], "fail", "although it was given none"),
        (CLOSED, [HOLDER, replace(OUTSIDER, devices=("/dev/nvidia0",))], "fail", "/dev/nvidia0"),
        (CLOSED, [HOLDER, replace(PEER, uuids=(FIRST,)), OUTSIDER], "fail", "is seen by"),
        (CLOSED, [replace(HOLDER, uuids=(FIRST, SECOND)), OUTSIDER], "fail", "not one device"),
        (CLOSED, [replace(HOLDER, uuids=()), OUTSIDER], "fail", "not one device"),
        (CLOSED, [replace(HOLDER, error="ErrImagePull"), OUTSIDER], "not_run", "ErrImagePull"),
        (replace(CLOSED, devices={}, error="late"), [HOLDER, OUTSIDER], "not_run", "late"),
        (CLOSED, [], "not_run", "no node answered"),
    ],
)
def test_access_without_evidence(
    probe: IsolationResult, looks: list[Look], status: str, word: str
) -> None:
    result = access.evaluate_access([probe], looks)
    assert result.status == status
    assert word in result.summary
    assert result.remedy


def test_pods_of_a_shared_gpu_may_see_the_same() -> None:
    looks = [replace(HOLDER, shared=True), replace(PEER, shared=True, uuids=(FIRST,)), OUTSIDER]
    assert access.evaluate_access([CLOSED], looks).status == "pass"
    labels = {"nvidia.com/gpu.replicas": "2"}
    assert access.evaluate_sharing(looks, {"gpu1": node("gpu1", 2, labels=labels)}).status == "pass"


def test_sharing_needs_two_pods_on_one_gpu() -> None:
    sharing = {"gpu1": node("gpu1", 4, labels={"nvidia.com/gpu.replicas": "2"})}
    assert access.evaluate_sharing([HOLDER, PEER], sharing).status == "not_run"
    plain = access.evaluate_sharing([HOLDER, PEER], {"gpu1": node("gpu1", 2)})
    assert "no node divides" in plain.summary


def test_so_many_pods_are_made_that_two_share_a_gpu() -> None:
    labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"}
    shared = node("gpu1", 8, labels=labels)
    assert access.holders(shared, {GPU_RESOURCE: 8}) == (GPU_RESOURCE, 3)
    assert access.holders(node("gpu1", 8), {GPU_RESOURCE: 8}) == (GPU_RESOURCE, 2)
    assert access.holders(node("gpu1", 8), {GPU_RESOURCE: 1}) == (GPU_RESOURCE, 1)
    assert access.holders(node("gpu1", 8), {}) == ("", 0)


@pytest.mark.parametrize(
    ("label", "status"), [("580.95.05", "pass"), ("570.1", "fail"), ("", "not_run")]
)
def test_the_driver_s_label_is_what_a_container_meets(label: str, status: str) -> None:
    nodes = {"gpu1": node("gpu1", 2, labels={DRIVER_LABEL: label} if label else {})}
    assert access.evaluate_driver([HOLDER, OUTSIDER], nodes).status == status
    assert access.evaluate_driver([OUTSIDER], nodes).status == "not_run"


def samples(busy: float, **metrics: float) -> accelerator_metrics.Values:
    metrics = {"DCGM_FI_DEV_GPU_UTIL": busy, "DCGM_FI_DEV_FB_USED": 4.0, **metrics}
    return accelerator_metrics.values(
        Sample(name, {"__name__": name, "UUID": FIRST}, value) for name, value in metrics.items()
    )


@pytest.mark.parametrize(
    ("before", "during", "status"),
    [
        (samples(0), samples(97), "pass"),
        (samples(95), samples(100), "pass"),
        (samples(0), samples(3), "fail"),
        (samples(0), {}, "fail"),
        ({}, samples(97), "fail"),
        ({FIRST: {"DCGM_FI_DEV_GPU_UTIL": 0.0}}, samples(97), "fail"),
    ],
)
def test_metrics_have_to_move_under_load(
    before: accelerator_metrics.Values, during: accelerator_metrics.Values, status: str
) -> None:
    assert accelerator_metrics.evaluate(before, during, FIRST, "").status == status


def test_profiling_fields_go_before_the_coarse_one_and_have_another_scale() -> None:
    metrics = samples(100, DCGM_FI_PROF_SM_ACTIVE=0.25)[FIRST]
    assert accelerator_metrics.utilization(metrics) == 0.25
    assert accelerator_metrics.utilization(samples(50)[FIRST]) == 0.5


def test_without_a_free_gpu_nothing_is_said_of_the_load() -> None:
    result = accelerator_metrics.evaluate(samples(0), {}, "", "gpu1: its GPUs are held")
    assert (result.status, result.summary) == ("not_run", "gpu1: its GPUs are held")


@pytest.mark.parametrize(
    ("count", "reason", "status"),
    [(20.0, "", "pass"), (19.0, "", "fail"), (None, "", "fail"), (None, "no image", "not_run")],
)
def test_prometheus_has_to_have_counted_all_requests(
    count: float | None, reason: str, status: str
) -> None:
    assert service.evaluate(count, {"pod": "service"}, reason).status == status


def test_the_monitor_selects_the_service_and_reads_its_port() -> None:
    pod, monitor = service.pod("busybox"), service.monitor()["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    [port], [endpoint] = pod["spec"]["containers"][0]["ports"], monitor["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"]


def test_all_of_dra_s_api_has_to_be_served() -> None:
    names = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
    answer: dict[str, Any] = {"resources": [{"name": name, "verbs": ["get"]} for name in names]}
    assert served.evaluate_dra(answer).status == "pass"
    del answer["resources"][3]
    assert "lacks resourceslices" in served.evaluate_dra(answer).summary
    assert served.evaluate_dra(None).status == "fail"


def test_no_autoscaler_is_no_gap_and_one_that_is_there_is_not_excused() -> None:
    fixed = served.evaluate_node_scaling(["kube-system/coredns"])
    assert fixed.status == "not_applicable"
    assert "faq.md" in fixed.summary
    scaled = served.evaluate_node_scaling(["kube-system/coredns", "karpenter/karpenter"])
    assert (scaled.status, "karpenter/karpenter" in scaled.summary) == ("not_run", True)


@pytest.mark.parametrize(
    ("succeeded", "partial", "status"), [(2, 0, "pass"), (1, 0, "fail"), (2, 1, "fail")]
)
def test_a_gang_starts_whole_or_not(succeeded: int, partial: int, status: str) -> None:
    assert kueue.evaluate_gang(succeeded, partial, "cpu", ()).status == status


@pytest.mark.parametrize(
    ("denial", "reconciled", "status"),
    [
        ('admission webhook "vclusterqueue.kb.io" denied the request', "", "pass"),
        ('admission webhook "vclusterqueue.kb.io" denied the request', "not active", "fail"),
        ("", "", "fail"),
        ("ClusterQueue is invalid: by its schema", "", "fail"),
    ],
)
def test_the_webhook_itself_has_to_refuse(denial: str, reconciled: str, status: str) -> None:
    assert kueue.evaluate_controller(denial, reconciled, ()).status == status


def test_only_the_quota_tells_a_job_that_fits_from_one_that_does_not() -> None:
    queue = kueue.cluster_queue(f"{kueue.GROUP}/v1beta2", "q", "cpu", "200m")
    [group] = queue["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"] == [{"name": "cpu", "nominalQuota": "200m"}]
    job = kueue.job("fits", "q", 2, "busybox", {"cpu": "100m"})
    assert job["spec"]["suspend"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"


def client_log(first: int, second: int, by_header: str = "model-b") -> str:
    lines = ["weight model-a"] * first + ["weight model-b"] * second + [f"header {by_header}"] * 5
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("log", "status"),
    [
        (client_log(30, 10), "pass"),
        (client_log(40, 0), "fail"),
        (client_log(10, 30), "fail"),
        (client_log(29, 10), "fail"),
        (client_log(30, 10, by_header="model-a"), "fail"),
        (client_log(30, 10, by_header="none"), "fail"),
        ("", "fail"),
    ],
)
def test_requests_go_by_weight_and_by_header(log: str, status: str) -> None:
    assert gateway.evaluate("envoy", log).status == status


def condition(name: str, status: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status}]}


def test_a_gateway_counts_when_its_controller_has_taken_it() -> None:
    classes = [
        {"metadata": {"name": "nobody-s"}, "status": condition("Accepted", "Unknown")},
        {"metadata": {"name": "envoy"}, "status": condition("Accepted", "True")},
    ]
    assert gateway.accepted_class(classes) == "envoy"
    assert gateway.accepted_class(classes[:1]) == ""
    addresses = {"addresses": [{"value": "192.0.2.7"}]}
    assert gateway.address({"status": {**condition("Programmed", "True"), **addresses}}) == (
        "192.0.2.7"
    )
    assert gateway.address({"status": {**condition("Programmed", "False"), **addresses}}) == ""
    assert gateway.address({}) == ""


@pytest.mark.parametrize(
    ("counts", "status", "word"),
    [
        ([0, 1, 1, 2, 2, 1], "pass", "up under load"),
        ([0, 1, 1], "fail", "1 of 2 pods"),
        ([1, 2, 2], "fail", "no pod was taken away"),
        ([], "fail", "0 of 2 pods"),
    ],
)
def test_pods_are_scaled_up_and_down(counts: list[int], status: str, word: str) -> None:
    result: Result = pod_scaling.evaluate(counts)
    assert (result.status, word in result.summary) == (status, True)


def test_the_autoscaler_needs_the_metric() -> None:
    assert not pod_scaling.is_served(None)
    assert not pod_scaling.is_served({"resources": [{"name": "namespaces/gpu_sm_active"}]})
    assert pod_scaling.is_served({"resources": [{"name": "pods/gpu_sm_active"}]})


_BUSYBOX = """\
#!/bin/sh
cd "$(dirname "$0")"
case "$*" in *wget*) ;; *) exit 0 ;; esac
echo >>requests
number=$(wc -l <requests)
[ "$number" -gt 3 ] || exit 1
case "$*" in
  *x-model*) echo model-b ;;
  *) [ $((number % 4)) -eq 0 ] && echo model-b || echo model-a ;;
esac
"""


def test_requests_are_counted_when_the_proxy_knows_the_route(tmp_path: Path) -> None:
    """A Gateway is programmed before that: the first three requests have no answer."""
    program = tmp_path / "busybox"
    program.write_text(_BUSYBOX)
    program.chmod(0o755)
    [container] = gateway.client("busybox", "10.0.0.1")["spec"]["containers"]
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = container["command"]
    log = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    assert gateway.evaluate("traefik", log).status == "pass"
