"""Series of GPUs that pods share, as dcgm-exporter 4.8.4 makes them, through verification.

internal/pkg/transformation/kubernetes.go (fafd1511): a container has one series for each share
that it holds, `vgpu` is what stands behind `::` in the device's id; GPU_UTIL and FB_USED have one
of the whole device beside them, and values of the pod's own. hpc.go: one more for each job's line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from gpuboot.verify.checks import metrics as checks
from gpuboot.verify.checks.attribution import attribution
from gpuboot.verify.checks.metrics import Limits
from gpuboot.verify.evidence import ExporterScrape, GpuPod, Instance, Reading
from gpuboot.verify.findings import Finding
from gpuboot.verify.prometheus import Prometheus, gpu_readings, parse_exposition
from tests.unit.evidence import evidence, metrics, only, series, uuid, workload_result

LIMITS = Limits(monitoring=True, max_age_s=60, interval_s=2, slices=4)
CLOCK, TEMPERATURE, UTIL = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
Labels = dict[str, str]


@dataclass(frozen=True)
class Held:
    """What a container holds. + devices: ids that the kubelet gave it, e.g. `GPU-a::1`"""

    pod: str
    devices: tuple[str, ...]
    container: str = "main"


def exported(
    gpu: str, holders: tuple[Held, ...], jobs: tuple[str, ...] = (), slice_: str = ""
) -> list[tuple[str, Labels, float]]:
    """The samples of one device: metric, labels, value."""
    whole = {"UUID": gpu, "gpu": "0"} | ({"GPU_I_ID": slice_} if slice_ else {})
    shares = [
        whole
        | {"namespace": "ml", "pod": held.pod, "container": held.container}
        | ({"vgpu": device.partition("::")[2]} if "::" in device else {})
        for held in holders
        for device in held.devices
    ]
    samples = []
    for name, value in {CLOCK: 1410.0, TEMPERATURE: 40.0, FREE: 0.0}.items():
        samples += [(name, labels, value) for labels in shares or [whole]]
    for name, value in {UTIL: 90.0, USED: 81000.0}.items():
        samples.append((name, whole, value))
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


def judged(readings: list[Reading]) -> list[Finding]:
    """The findings on the first GPU of gpu1, whose series these are."""
    said = metrics(series=(*readings, *series("gpu1", 2)[1:]))
    seen = evidence(metrics=said)
    return checks.prometheus(seen.hosts[0], seen, LIMITS)


def named(
    readings: list[Reading], ours: tuple[str, ...] = (), others: tuple[str, ...] = (), **more: Any
) -> Finding:
    """Whether the series of gpu1's first GPU name who holds it.

    + ours: pods of this verification that saw it; others: pods that hold something of gpu1
    """
    results = [workload_result("gpu1", 0, namespace="ml", pod=pod) for pod in ours]
    held = tuple(GpuPod(namespace="ml", name=pod, node="gpu1", gpus=1) for pod in others)
    seen = evidence(
        metrics=metrics(series=tuple(readings), exporters=more.pop("exporters", ())),
        workload_results=(*results, workload_result("gpu1", 1, namespace="ml", pod="elsewhere")),
        gpu_pods=held,
        **more,
    )
    (found,) = attribution(seen.hosts[0], seen, LIMITS)
    return found


GPU = uuid("gpu1", 0)
TWO = (f"{GPU}::0", f"{GPU}::1")
SHARED = {
    "two shares in one container": (Held("train-0", TWO),),
    "two containers": (Held("train-0", TWO[:1]), Held("train-0", TWO[1:], "sidecar")),
    "two containers with two shares each": (
        Held("train-0", TWO), Held("train-0", (f"{GPU}::2", f"{GPU}::3"), "sidecar"),
    ),
    "two pods": (Held("train-0", TWO[:1]), Held("train-1", TWO[1:])),
    "nobody": (),
    "a whole GPU": (Held("train-0", (GPU,)),),
}  # fmt: skip


@pytest.mark.parametrize("holders", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("jobs", [(), ("4711",), ("4711", "4712")], ids=["", "job", "jobs"])
def test_each_share_and_each_job_has_a_series(
    holders: tuple[Held, ...], jobs: tuple[str, ...]
) -> None:
    """Time slices and MPS alike: the device plugin names replicas of both `UUID::number`."""
    found = judged(in_prometheus(exported(GPU, holders, jobs)))
    assert {item.status for item in found} == {"pass"}, found


@pytest.mark.parametrize("holders", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("jobs", [(), ("4711", "4712")], ids=["", "jobs"])
def test_what_is_scraped_twice_is_still_told(
    holders: tuple[Held, ...], jobs: tuple[str, ...]
) -> None:
    samples = exported(GPU, holders, jobs)
    failed = only(judged(in_prometheus(samples) + in_prometheus(samples, "b")), "fail")
    assert failed.gpu_uuid == GPU
    assert "2 series of the same metric" in failed.detail
    if holders and jobs:
        assert failed.detail.endswith("job 4711")


def test_one_share_that_is_there_twice_is_named() -> None:
    readings = in_prometheus(exported(GPU, (Held("train-0", TWO),)))
    failed = only(judged([*readings, readings[1]]), "fail")
    assert failed.detail == (
        "2 series of the same metric, of pod ml/train-0, container main, share 1"
    )


def test_shares_of_mig_instances() -> None:
    """Two time slices of instance 1 in one container, and instance 2 whole in the same."""
    one, two = ("MIG-1::0", "MIG-1::1"), ("MIG-2",)
    samples = exported("GPU-m", (Held("train-0", one),), slice_="1")
    samples += exported("GPU-m", (Held("train-0", two),), slice_="2")
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
            exported(uuid("gpu1", index), (Held("train-0", (uuid("gpu1", index),)),))
        )
    ]
    said = metrics(series=tuple(readings))
    seen = evidence(metrics=said)
    found = checks.prometheus(seen.hosts[0], seen, replace(LIMITS, slices=1))
    assert [item.status for item in found] == ["pass", "pass"]


def test_memory_is_that_of_the_device_and_not_of_a_pod_that_uses_none() -> None:
    """A full GPU: its pods' own FB_USED is 0 for one that has not begun, and FB_FREE is 0."""
    lines = []
    for name, labels, value in exported(GPU, SHARED["two pods"]):
        text = ",".join(f'{label}="{said}"' for label, said in labels.items())
        lines.append(f"{name}{{{text}}} {value:g}")
    (reading,) = gpu_readings(parse_exposition("\n".join(lines)), "gpu1")
    assert reading.memory == 81000.0


def shares(*pods: str, first: int = 0) -> list[Reading]:
    """Series of a GPU of which each of these pods holds a share; "": of nobody's."""
    held = tuple(Held(pod, (f"{GPU}::{first + n}",)) for n, pod in enumerate(pods))
    return in_prometheus(exported(GPU, held))


TWO_PODS = ("train-0", "train-1")


@pytest.mark.parametrize("jobs", [(), ("4711", "4712")], ids=["", "jobs"])
def test_pods_that_share_a_gpu_are_named_with_their_shares(jobs: tuple[str, ...]) -> None:
    found = named(in_prometheus(exported(GPU, SHARED["two pods"], jobs)), ours=TWO_PODS)
    assert found.status == "pass"
    assert found.detail == "its series name ml/train-0 (share 0), ml/train-1 (share 1)"


def test_others_beside_ours_are_theirs() -> None:
    found = named(shares("train-0", "served"), ours=("train-0",), others=("served",))
    assert found.status == "pass"


def test_only_others_hold_it() -> None:
    readings = in_prometheus(exported(GPU, SHARED["two containers with two shares each"]))
    found = named(readings, others=("train-0",))
    assert (found.status, found.detail.count("ml/train-0 (share")) == ("pass", 4)


def test_whose_share_it_is_cannot_be_known_while_nobody_holds_one() -> None:
    found = named(in_prometheus(exported(GPU, ())))
    assert found.status == "not_covered"
    assert "no pod of this verification held it" in found.detail


WRONG: dict[str, tuple[list[Reading], str]] = {
    "one of ours is missing": (shares("train-1"), "ml/train-0 holds a share of it"),
    "all are missing": (in_prometheus(exported(GPU, ())), "its series name no pod"),
    "it names the exporter": (shares("nvidia-dcgm-exporter-x"), "ml/train-0, ml/train-1 hold a"),
    "it names one of ours that holds another": (
        shares(*TWO_PODS, "elsewhere"), "ml/elsewhere, which holds a share of another GPU",
    ),
    "shares have no numbers": (
        in_prometheus(exported(GPU, (Held("train-0", (GPU,)), Held("train-1", (GPU,))))),
        "without saying which share",
    ),
    "one share is two pods'": (
        shares("train-0") + shares("train-1"), "give share 0 to several containers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("readings", "detail"), WRONG.values(), ids=WRONG)
def test_wrong_names_of_shares_fail(readings: list[Reading], detail: str) -> None:
    found = named(readings, ours=TWO_PODS)
    assert found.status == "fail", found
    assert detail in found.detail
    assert "KUBERNETES_VIRTUAL_GPUS=true" in found.remedy


def test_a_pod_that_nobody_saw_before_is_no_failure() -> None:
    found = named(shares("train-0", "new"), ours=("train-0",))
    assert (found.status, "ml/new, which held no GPU" in found.detail) == ("not_covered", True)


def test_compute_instances_of_one_gpu_instance_have_shares_of_the_same_number() -> None:
    """Their series are those of the GPU instance: share 0 of one, and share 0 of the other."""
    seen = evidence()
    gpu = replace(
        seen.hosts[0].gpus[0],
        mig=True,
        instances=tuple(
            Instance(uuid=f"MIG-{ci}", profile="1c.2g.20gb", index=ci, gi=1, ci=ci) for ci in (0, 1)
        ),
    )
    node = replace(seen.hosts[0], gpus=(gpu,), replicas=2)
    held = tuple(Held(f"train-{n}", (f"MIG-{n}::0",)) for n in (0, 1))
    results = tuple(
        workload_result("gpu1", 0, namespace="ml", pod=f"train-{n}", uuids=(f"MIG-{n}",))
        for n in (0, 1)
    )
    readings = tuple(in_prometheus(exported(gpu.uuid, held, slice_="1")))
    seen = evidence(metrics=metrics(series=readings), workload_results=results)
    found = attribution(node, seen, replace(LIMITS, slices=1))
    assert [item.status for item in found] == ["pass", "pass"], found


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
    found = named(
        in_prometheus(exported(GPU, ())),
        ours=TWO_PODS,
        exporters=(ExporterScrape(node="gpu1", pod="e", readings=(now,)),),
        earlier_names={(GPU, ""): 1_800_000_000.0} if stored else {},
    )
    assert found.status == status, found


def test_the_exporter_names_all_pods_of_a_device() -> None:
    lines = []
    for name, labels, value in exported(GPU, SHARED["two pods"]):
        text = ",".join(f'{label}="{said}"' for label, said in labels.items())
        lines.append(f"{name}{{{text}}} {value:g}")
    (reading,) = gpu_readings(parse_exposition("\n".join(lines)), "gpu1")
    assert reading.pods == {"ml/train-0", "ml/train-1"}
