"""Series of GPUs that pods share, as dcgm-exporter 4.8.4 makes them, through verification.

internal/pkg/transformation/kubernetes.go (fafd1511): a container has one series for each share
that it holds, `vgpu` is what stands behind `::` in the device's id; GPU_UTIL and FB_USED have one
of the whole device beside them, and values of the pod's own. hpc.go: one more for each job's line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from gpuboot.cluster.pods import Pod
from gpuboot.hosts.mig_devices import Instance
from gpuboot.verify.checks import metrics_checks as checks
from gpuboot.verify.checks.attribution import attribution
from gpuboot.verify.checks.metrics_checks import Limits
from gpuboot.verify.evidence import ExporterScrape, Reading
from gpuboot.verify.findings import Finding
from gpuboot.verify.prometheus import Prometheus, gpu_readings, parse_exposition
from tests.unit.evidence import evidence, metrics, only, series, uuid, workload_result

LIMITS = Limits(monitoring=True, max_age_s=60, interval_s=2, slices=4)
CLOCK, TEMPERATURE, UTIL = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
Labels = dict[str, str]


@dataclass(frozen=True)
class Allocation:
    """What a container holds. + devices: ids that the kubelet gave it, e.g. `GPU-a::1`"""

    pod: str
    devices: tuple[str, ...]
    container: str = "main"


def exported(
    gpu: str, holders: tuple[Allocation, ...], jobs: tuple[str, ...] = (), slice_: str = ""
) -> list[tuple[str, Labels, float]]:
    """The samples of one device: metric, labels, value."""
    device_labels = {"UUID": gpu, "gpu": "0"} | ({"GPU_I_ID": slice_} if slice_ else {})
    shares = [
        device_labels
        | {"namespace": "ml", "pod": allocation.pod, "container": allocation.container}
        | ({"vgpu": device.partition("::")[2]} if "::" in device else {})
        for allocation in holders
        for device in allocation.devices
    ]
    samples = []
    for name, value in {CLOCK: 1410.0, TEMPERATURE: 40.0, FREE: 0.0}.items():
        samples += [(name, labels, value) for labels in shares or [device_labels]]
    for name, value in {UTIL: 90.0, USED: 81000.0}.items():
        samples.append((name, device_labels, value))
        samples += [(name, labels | {"pod_uid": labels["pod"]}, 0.0) for labels in shares]
    if jobs:
        samples = [(n, labels | {"hpc_job": job}, v) for n, labels, v in samples for job in jobs]
    return samples


def in_prometheus(samples: list[tuple[str, Labels, float]], instance: str = "a") -> list[Reading]:
    """What the query for ages answers, of which `tests/rules/test_anchor.py` asks promtool."""
    result = [
        {"metric": labels | {"node": "gpu1", "instance": instance}, "value": [1000.0, "995.0"]}
        for name, labels, _ in samples
        if name == CLOCK
    ]

    class Reader:
        def json(self, path: str, query: Any = None) -> Any:
            return {"status": "success", "data": {"result": result}}

    return list(Prometheus(Reader(), "").gpu_series())


def findings_of(readings: list[Reading]) -> list[Finding]:
    """The findings on the first GPU of gpu1, whose series these are."""
    metric_data = metrics(series=(*readings, *series("gpu1", 2)[1:]))
    observed = evidence(metrics=metric_data)
    return checks.prometheus(observed.hosts[0], observed, LIMITS)


def attribution_of(
    readings: list[Reading],
    own_pods: tuple[str, ...] = (),
    other_pods: tuple[str, ...] = (),
    **options: Any,
) -> Finding:
    """Whether the series of gpu1's first GPU name who holds it: own_pods of this verification.

    + other_pods: pods that hold something of gpu1
    """
    results = [workload_result("gpu1", 0, namespace="ml", pod=pod) for pod in own_pods]
    holding_pods = tuple(Pod(namespace="ml", name=pod, node="gpu1") for pod in other_pods)
    collected = evidence(
        metrics=metrics(series=tuple(readings), exporters=options.pop("exporters", ())),
        workload_results=(*results, workload_result("gpu1", 1, namespace="ml", pod="elsewhere")),
        gpu_pods=holding_pods,
        **options,
    )
    (finding,) = attribution(collected.hosts[0], collected, LIMITS)
    return finding


GPU = uuid("gpu1", 0)
TWO = (f"{GPU}::0", f"{GPU}::1")
SHARED = {
    "two shares in one container": (Allocation("train-0", TWO),),
    "two containers": (Allocation("train-0", TWO[:1]), Allocation("train-0", TWO[1:], "sidecar")),
    "two containers with two shares each": (
        Allocation("train-0", TWO), Allocation("train-0", (f"{GPU}::2", f"{GPU}::3"), "sidecar"),
    ),
    "two pods": (Allocation("train-0", TWO[:1]), Allocation("train-1", TWO[1:])),
    "nobody": (),
    "a whole GPU": (Allocation("train-0", (GPU,)),),
}  # fmt: skip


@pytest.mark.parametrize("holders", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("jobs", [(), ("4711",), ("4711", "4712")], ids=["", "job", "jobs"])
def test_each_share_and_each_job_has_a_series(
    holders: tuple[Allocation, ...], jobs: tuple[str, ...]
) -> None:
    """Time slices and MPS alike: the device plugin names replicas of both `UUID::number`."""
    findings = findings_of(in_prometheus(exported(GPU, holders, jobs)))
    assert {item.status for item in findings} == {"pass"}, findings


@pytest.mark.parametrize("holders", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("jobs", [(), ("4711", "4712")], ids=["", "jobs"])
def test_what_is_scraped_twice_is_still_told(
    holders: tuple[Allocation, ...], jobs: tuple[str, ...]
) -> None:
    samples = exported(GPU, holders, jobs)
    failed = only(findings_of(in_prometheus(samples) + in_prometheus(samples, "b")), "fail")
    assert failed.gpu_uuid == GPU
    assert "2 series of the same metric" in failed.detail
    if holders and jobs:
        assert failed.detail.endswith("job 4711")


def test_one_share_that_is_there_twice_is_named() -> None:
    readings = in_prometheus(exported(GPU, (Allocation("train-0", TWO),)))
    failed = only(findings_of([*readings, readings[1]]), "fail")
    assert failed.detail == (
        "2 series of the same metric, of pod ml/train-0, container main, share 1"
    )


def test_shares_of_mig_instances() -> None:
    """Two time slices of instance 1 in one container, and instance 2 whole in the same."""
    first, two = ("MIG-1::0", "MIG-1::1"), ("MIG-2",)
    samples = exported("GPU-m", (Allocation("train-0", first),), slice_="1")
    samples += exported("GPU-m", (Allocation("train-0", two),), slice_="2")
    readings = in_prometheus(samples)
    assert [(item.key, item.share) for item in readings] == [
        (("GPU-m", "1"), ("main", "0", "")),
        (("GPU-m", "1"), ("main", "1", "")),
        (("GPU-m", "2"), ("main", "", "")),
    ]


def test_a_pod_with_two_whole_gpus_has_one_series_of_each() -> None:
    readings = [
        reading
        for index in (0, 1)
        for reading in in_prometheus(
            exported(uuid("gpu1", index), (Allocation("train-0", (uuid("gpu1", index),)),))
        )
    ]
    metric_data = metrics(series=tuple(readings))
    observed = evidence(metrics=metric_data)
    findings = checks.prometheus(observed.hosts[0], observed, replace(LIMITS, slices=1))
    assert [item.status for item in findings] == ["pass", "pass"]


def test_memory_is_that_of_the_device_and_not_of_a_pod_that_uses_none() -> None:
    """A full GPU: its pods' own FB_USED is 0 for one that has not begun, and FB_FREE is 0."""
    lines = []
    for name, labels, value in exported(GPU, SHARED["two pods"]):
        text = ",".join(f'{label}="{label_value}"' for label, label_value in labels.items())
        lines.append(f"{name}{{{text}}} {value:g}")
    (reading,) = gpu_readings(parse_exposition("\n".join(lines)), "gpu1")
    assert reading.memory == 81000.0


def shares(*pods: str, first: int = 0) -> list[Reading]:
    """Series of a GPU of which each of these pods holds a share; "": of nobody's."""
    allocations = tuple(Allocation(pod, (f"{GPU}::{first + n}",)) for n, pod in enumerate(pods))
    return in_prometheus(exported(GPU, allocations))


TWO_PODS = ("train-0", "train-1")


@pytest.mark.parametrize("jobs", [(), ("4711", "4712")], ids=["", "jobs"])
def test_pods_that_share_a_gpu_are_named_with_their_shares(jobs: tuple[str, ...]) -> None:
    finding = attribution_of(
        in_prometheus(exported(GPU, SHARED["two pods"], jobs)), own_pods=TWO_PODS
    )
    assert finding.status == "pass"
    assert finding.detail == "its series name ml/train-0 (share 0), ml/train-1 (share 1)"


def test_others_beside_ours_are_theirs() -> None:
    finding = attribution_of(
        shares("train-0", "served"), own_pods=("train-0",), other_pods=("served",)
    )
    assert finding.status == "pass"


def test_only_others_hold_it() -> None:
    readings = in_prometheus(exported(GPU, SHARED["two containers with two shares each"]))
    finding = attribution_of(readings, other_pods=("train-0",))
    assert (finding.status, finding.detail.count("ml/train-0 (share")) == ("pass", 4)


def test_whose_share_it_is_cannot_be_known_while_nobody_holds_one() -> None:
    finding = attribution_of(in_prometheus(exported(GPU, ())))
    assert finding.status == "not_covered"
    assert "no pod of this verification held it" in finding.detail


WRONG_READINGS: dict[str, tuple[list[Reading], str]] = {
    "one of ours is missing": (shares("train-1"), "ml/train-0 holds a share of it"),
    "all are missing": (in_prometheus(exported(GPU, ())), "its series name no pod"),
    "it names the exporter": (shares("nvidia-dcgm-exporter-x"), "ml/train-0, ml/train-1 hold a"),
    "it names one of ours that holds another": (
        shares(*TWO_PODS, "elsewhere"), "ml/elsewhere, which holds a share of another GPU",
    ),
    "shares have no numbers": (
        in_prometheus(
            exported(GPU, (Allocation("train-0", (GPU,)), Allocation("train-1", (GPU,))))
        ),
        "without saying which share",
    ),
    "one share is two pods'": (
        shares("train-0") + shares("train-1"), "give share 0 to several containers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("readings", "detail"), WRONG_READINGS.values(), ids=WRONG_READINGS)
def test_wrong_names_of_shares_fail(readings: list[Reading], detail: str) -> None:
    finding = attribution_of(readings, own_pods=TWO_PODS)
    assert finding.status == "fail", finding
    assert detail in finding.detail
    assert "KUBERNETES_VIRTUAL_GPUS=true" in finding.remedy


def test_a_pod_that_nobody_saw_before_is_no_failure() -> None:
    finding = attribution_of(shares("train-0", "new"), own_pods=("train-0",))
    assert (finding.status, "ml/new, which held no GPU" in finding.detail) == ("not_covered", True)


def test_compute_instances_of_one_gpu_instance_have_shares_of_the_same_number() -> None:
    """Their series are those of the GPU instance: share 0 of one, and share 0 of the other."""
    collected = evidence()
    gpu = replace(
        collected.hosts[0].gpus[0],
        mig=True,
        instances=tuple(
            Instance(uuid=f"MIG-{ci}", profile="1c.2g.20gb", index=ci, gi=1, ci=ci) for ci in (0, 1)
        ),
    )
    node = replace(collected.hosts[0], gpus=(gpu,), replicas=2)
    allocations = tuple(Allocation(f"train-{n}", (f"MIG-{n}::0",)) for n in (0, 1))
    results = tuple(
        workload_result("gpu1", 0, namespace="ml", pod=f"train-{n}", uuids=(f"MIG-{n}",))
        for n in (0, 1)
    )
    readings = tuple(in_prometheus(exported(gpu.uuid, allocations, slice_="1")))
    collected = evidence(metrics=metrics(series=readings), workload_results=results)
    findings = attribution(node, collected, replace(LIMITS, slices=1))
    assert [item.status for item in findings] == ["pass", "pass"], findings


@pytest.mark.parametrize(
    ("exported_pods", "stored", "status"),
    [
        ({"ml/train-0", "ml/train-1"}, True, "pass"),
        ({"ml/train-0", "ml/train-1"}, False, "fail"),
        ({"ml/train-0"}, True, "fail"),
        ({"ml/train-0", "ml/train-1", "ml/elsewhere"}, True, "fail"),
    ],
)
def test_the_next_sample_will_name_all_that_the_exporter_names(
    exported_pods: set[str], stored: bool, status: str
) -> None:
    now = Reading(uuid=GPU, node="gpu1", pods=frozenset(exported_pods), pod="ml/train-0")
    finding = attribution_of(
        in_prometheus(exported(GPU, ())),
        own_pods=TWO_PODS,
        exporters=(ExporterScrape(node="gpu1", pod="e", readings=(now,)),),
        earlier_names={(GPU, ""): 1_800_000_000.0} if stored else {},
    )
    assert finding.status == status, finding
