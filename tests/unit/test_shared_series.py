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
from gpuboot.verify.checks.metrics import Limits
from gpuboot.verify.evidence import Reading
from gpuboot.verify.findings import Finding
from gpuboot.verify.prometheus import Prometheus, gpu_readings, parse_exposition
from tests.unit.evidence import evidence, metrics, only, series, uuid

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
