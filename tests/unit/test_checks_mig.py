"""MIG: a sound node is proven by MIG UUID, and what is broken on one is found.

The layouts are those of real machines (tests/unit/recordings.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import chain, kubernetes
from gpuboot.verify.checks import host as host_checks
from gpuboot.verify.checks import metrics as metric_checks
from gpuboot.verify.checks.metrics import Limits
from gpuboot.verify.devices import Device, Gpu
from gpuboot.verify.evidence import (
    Evidence,
    ExporterScrape,
    Host,
    Metrics,
    Reading,
    Target,
    WorkloadResult,
)
from gpuboot.verify.findings import GPU_LINKS, Finding
from gpuboot.verify.gpu_state import parse
from tests.unit import recordings as seen
from tests.unit.evidence import LOADED, NVRM, node, of, only
from tests.unit.test_mig_devices import fact

NODE = "dgx-1"
LIMITS = Limits(monitoring=True, max_age_s=60, interval_s=15)
OFFER = {"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 1}
ALL = {device: seen.mig_uuid(device) for device in seen.A100_GI}


def machine(gpus: tuple[Gpu, ...] = seen.MIXED, **other: Any) -> Host:
    slots = tuple(gpu.pci for gpu in gpus)
    plain = Host(
        node=NODE,
        expected_gpus=len(gpus),
        gpus=gpus,
        pci_addresses=slots,
        driver_requested=LOADED,
        driver_installed=LOADED,
        driver_loaded=LOADED,
        driver_text=NVRM,
    )
    return replace(
        plain, **({"runtime_handlers": ("nvidia",), "default_runtime": "nvidia"} | other)
    )


def pod(device: Device) -> str:
    return f"gpuboot-verify/vectoradd-{device.uuid[-2:]}"


def reading(device: Device, **other: Any) -> Reading:
    """As the DGX's exporter had it: a slice has its GPU's UUID, temperature and power."""
    key = device.key
    assert key is not None
    plain = Reading(
        uuid=key[0],
        node=NODE,
        pod=pod(device),
        temperature=35,
        power=102.176,
        memory=9856,
        energy=None,
        slice=key[1],
    )
    return replace(plain, **other)


def evidence(host: Host, strategy: str = "mixed", **other: Any) -> Evidence:
    """All is well: every device has its pod, and its series name it."""
    trials = tuple(
        WorkloadResult(
            pod=pod(device).partition("/")[2],
            namespace="gpuboot-verify",
            node=NODE,
            uuids=(device.uuid,),
            passed=True,
            seconds=3,
            resource=device.resource(strategy),  # type: ignore[arg-type]
        )
        for device in host.devices
    )
    label = {"nvidia.com/mig.strategy": strategy}
    # compute instances of one GPU instance have one series, which names the last of their pods
    series = {device.key: reading(device) for device in host.devices}
    readings = tuple(series.values())
    plain = Evidence(
        hosts=(host,),
        nodes={NODE: node(NODE, 1, mig=OFFER, labels=label)},
        workload_results=trials,
        metrics=Metrics(
            exporters=(ExporterScrape(node=NODE, pod="exporter", readings=readings),),
            series=tuple(replace(item, age_s=3.0) for item in readings),
            targets=(Target(job="nvidia-dcgm-exporter", node=NODE, health="up"),),
        ),
        idle_series=(),
    )
    return replace(plain, **other)


def judge(what: Evidence, limits: Limits = LIMITS, mode: str = "default") -> list[Finding]:
    (host,) = what.hosts
    found = [
        *host_checks.evaluate(host, mode),
        *kubernetes.evaluate(host, what, limits.slices, limits.strategy),
        *metric_checks.evaluate(host, what, limits),
    ]
    return found + chain.unreached(host, found, GPU_LINKS)


def with_series(what: Evidence, readings: tuple[Reading, ...]) -> Evidence:
    ages = tuple(replace(item, age_s=3.0) for item in readings)
    answer = replace(what.metrics.exporters[0], readings=readings)
    return replace(what, metrics=replace(what.metrics, exporters=(answer,), series=ages))


def test_a_sound_mixed_node_is_proven_by_mig_uuid() -> None:
    """One slice per series is no double scrape, and a whole GPU is judged as always."""
    found = judge(evidence(machine()))
    assert {item.status for item in found} == {"pass"}
    of_pods = {item.gpu_uuid for item in found if item.link in {"workload", "attribution"}}
    assert of_pods == {*ALL.values(), seen.A100_WHOLE}
    physical = {item.gpu_uuid for item in found if item.link == "nvidia-smi"}
    assert physical == {seen.A100_CUT, seen.A100_WHOLE}
    (layout,) = [f.detail for f in found if f.link == "nvidia-smi" and f.gpu_uuid == seen.A100_CUT]
    assert "MIG: 4 x 1g.10gb, 1 x 3g.40gb" in layout


def uniform() -> tuple[Gpu, ...]:
    """The capture's GPU 0: seven 1g.10gb with GPU instances 7 to 13."""
    cut = replace(
        seen.MIXED[0],
        instances=tuple(
            replace(seen.MIXED[0].instances[0], uuid=seen.mig_uuid(gi), index=index, gi=gi)
            for index, gi in enumerate(range(7, 14))
        ),
    )
    return (cut,)


def test_under_single_each_instance_is_an_nvidia_com_gpu() -> None:
    host = machine(uniform())
    what = evidence(host, "single", nodes={NODE: node(NODE, 7)})
    assert {item.status for item in judge(what)} == {"pass"}
    assert {trial.resource for trial in what.workload_results} == {"nvidia.com/gpu"}
    six = replace(what, nodes={NODE: node(NODE, 6)}, workload_results=what.workload_results[:6])
    missing = only(of(judge(six), "fail", "allocatable"), "fail")
    assert missing.gpu_uuid == host.devices[6].uuid
    assert "6 of 7 nvidia.com/gpu" in missing.detail


def test_the_nodes_own_label_wins_over_the_setting() -> None:
    what = evidence(machine())
    assert {item.status for item in judge(what, replace(LIMITS, strategy="single"))} == {"pass"}


def test_a_dead_device_plugin_fails_on_a_mig_node() -> None:
    """It was `not covered`: 0 devices were taken for a MIG layout."""
    dead = node(NODE, 0, labels={"nvidia.com/mig.strategy": "mixed"})
    found = judge(evidence(machine(), nodes={NODE: dead}, workload_results=()))
    failed = of(found, "fail", "allocatable")
    assert sorted(item.detail for item in failed) == [
        "0 of 1 nvidia.com/gpu allocatable",
        "0 of 1 nvidia.com/mig-3g.40gb allocatable",
        "0 of 4 nvidia.com/mig-1g.10gb allocatable",
    ]
    assert all("device plugin" in item.remedy for item in failed)


@pytest.mark.parametrize("uuid", [seen.A100_WHOLE, ALL[9]])
def test_a_failed_computation_on_a_mixed_node_fails(uuid: str) -> None:
    what = evidence(machine())
    trials = tuple(
        replace(item, passed=False, error="log: Test FAILED") if item.uuids == (uuid,) else item
        for item in what.workload_results
    )
    failed = only(judge(replace(what, workload_results=trials)), "fail")
    assert (failed.link, failed.gpu_uuid) == ("workload", uuid)


def test_a_mig_device_that_no_pod_got_is_not_covered_by_its_name() -> None:
    what = evidence(machine())
    rest = tuple(item for item in what.workload_results if item.uuids != (ALL[2],))
    found = of(judge(replace(what, workload_results=rest)), "not_covered", "workload")
    assert [item.gpu_uuid for item in found] == [ALL[2]]
    assert "nvidia.com/mig-3g.40gb" in found[0].detail


def test_a_slice_that_the_exporter_lacks_fails_for_its_mig_device() -> None:
    what = evidence(machine())
    without = tuple(item for item in what.metrics.exporters[0].readings if item.slice != "9")
    found = of(judge(with_series(what, without)), "fail")
    assert {(item.link, item.gpu_uuid) for item in found} == {
        ("exporter", ALL[9]),
        ("prometheus", ALL[9]),
    }
    assert f"UUID {seen.A100_CUT}, GPU_I_ID 9" in found[0].detail


@pytest.mark.parametrize(
    ("devices", "left", "status"),
    [
        ("g:4", "7", "not_covered"),  # whole GPUs by number, and no slice
        ("g:0-3", "", "not_covered"),
        ("g:2,4", "", "fail"),
        ("i:0-3", "7", "not_covered"),
        ("i", "", "not_covered"),
        ("i", "7", "fail"),
        ("f", "7", "fail"),
    ],
)
def test_what_the_exporter_was_told_to_leave_out_is_not_covered(
    devices: str, left: str, status: str
) -> None:
    """It had no series, and failed; the two cards are 2 (cut) and 4 (whole)."""
    what = evidence(machine())
    rest = tuple(r for r in what.metrics.exporters[0].readings if r.slice != left)
    found = judge(with_series(what, rest), replace(LIMITS, devices=devices))
    gone = {item.link: item.status for item in found if item.status != "pass"}
    assert gone["exporter"] == gone["prometheus"] == status


def test_a_slice_that_the_host_has_no_more_fails() -> None:
    what = evidence(machine())
    old = replace(what.metrics.exporters[0].readings[0], slice="14")
    found = judge(with_series(what, (*what.metrics.exporters[0].readings, old)))
    failed = only(found, "fail")
    assert "GPU_I_ID 14, which the node lacks" in failed.detail


def test_a_slice_that_is_scraped_twice_fails() -> None:
    what = evidence(machine())
    series = what.metrics.series or ()
    twice = replace(what.metrics, series=(*series, series[0]))
    failed = only(judge(replace(what, metrics=twice)), "fail")
    assert "2 series of the same metric" in failed.detail
    assert (failed.link, failed.gpu_uuid) == ("prometheus", what.hosts[0].devices[0].uuid)


def test_a_slice_that_names_another_slices_pod_fails() -> None:
    what = evidence(machine())
    first, second, *rest = what.metrics.exporters[0].readings
    found = judge(with_series(what, (replace(first, pod=second.pod), second, *rest)))
    failed = only(found, "fail")
    assert (failed.link, failed.gpu_uuid) == ("attribution", what.hosts[0].devices[0].uuid)


def test_a_slice_may_lack_memory_and_a_missing_temperature_is_found() -> None:
    """NVIDIA/dcgm-exporter issue 512: FB fields are missing of H100 GPU instances."""
    what = evidence(machine())
    bare = tuple(
        replace(r, memory=None) if r.slice else r for r in what.metrics.exporters[0].readings
    )
    found = judge(with_series(what, bare))
    assert {item.status for item in found} == {"pass"}
    assert {"35 °C, 102.176 W, no device memory"} == {
        f.detail for f in found if f.link == "exporter" and f.gpu_uuid != seen.A100_WHOLE
    }
    cold = tuple(replace(r, temperature=None) if r.slice == "2" else r for r in bare)
    failed = only(judge(with_series(what, cold)), "fail")
    assert failed.gpu_uuid == ALL[2]
    assert "DCGM_FI_DEV_GPU_TEMP" in failed.detail


@pytest.mark.parametrize(("strategy", "status"), [("mixed", "not_covered"), ("single", "fail")])
def test_mig_without_instances_is_told_and_never_passes(strategy: str, status: str) -> None:
    empty = replace(seen.MIXED[0], instances=())
    host = machine((empty, seen.MIXED[1]))
    what = evidence(
        host, strategy, nodes={NODE: node(NODE, 1, labels={"nvidia.com/mig.strategy": strategy})}
    )
    parent = reading(Device(empty), pod="", memory=None)
    found = judge(with_series(what, (parent, reading(Device(seen.MIXED[1])))))
    untold = of(found, "not_covered")
    assert {item.gpu_uuid for item in untold} == {seen.A100_CUT}
    assert all("no instance was made of it" in item.detail for item in untold)
    assert {item.link for item in untold} >= {"runtime", "workload", "attribution"}
    (first,) = [f for f in found if f.link == "allocatable" and f.status != "pass"]
    assert first.status == status


@pytest.mark.parametrize(
    ("gpus", "strategy", "detail"),
    [
        (seen.MIXED[:1], "single", "it has 1g.10gb and 3g.40gb"),
        ((*uniform(), seen.MIXED[1]), "single", "MIG is on for some GPUs and off for others"),
    ],
)
def test_layouts_that_the_device_plugin_refuses(
    gpus: tuple[Gpu, ...], strategy: str, detail: str
) -> None:
    """k8s-device-plugin internal/rm/device_map.go: an error, and no device at all is offered."""
    refused = node(NODE, 0, labels={"nvidia.com/mig.strategy": strategy})
    found = judge(evidence(machine(gpus), nodes={NODE: refused}, workload_results=()))
    failed = only(of(found, "fail", "allocatable"), "fail")
    assert detail in failed.detail
    assert "mixed" in failed.remedy


def h200() -> tuple[Gpu, ...]:
    return parse(fact(seen.H200_ROW, listing=seen.H200_LIST, details=seen.H200_DETAILS)).gpus


def test_compute_instances_that_share_a_gpu_instance() -> None:
    """A real H200 with 1c.3g and 2c.3g in one GPU instance: `mixed` knows no such profile.

    Their series are one, which names one of their pods (dcgm-exporter 4.5.3-4.8.2,
    internal/pkg/transformation/kubernetes.go: the last pod of a GPU instance wins).
    """
    host = machine(h200())
    found = judge(evidence(host))
    failed = only(of(found, "fail", "allocatable"), "fail")
    assert "1c.3g.71gb, 2c.3g.71gb" in failed.detail
    named = {f.gpu_uuid: f.status for f in found if f.link == "attribution"}
    assert set(named.values()) == {"pass"}
    assert len(named) == 5


def test_under_none_mig_devices_are_not_covered() -> None:
    """device_map.go: GPUs are offered whole, whether MIG is on or not."""
    whole = node(NODE, 2, labels={"nvidia.com/mig.strategy": "none"})
    what = evidence(machine(), "none", nodes={NODE: whole})
    found = judge(what)
    assert of(found, "fail") == []
    links = {f.link for f in found if f.status == "not_covered" and f.gpu_uuid in ALL.values()}
    assert links == {"allocatable", "workload", "attribution"}


@pytest.mark.parametrize(
    "names",
    [
        # v1.20.0's default: by index and by UUID (cmd/nvidia-ctk/cdi/generate/generate.go:149)
        ["0:0", "0:1", "0:2", "0:3", "0:4", "MIG-00000000-0000-0000-0000-000000000000"],
        [f"mig0:{index}" for index in range(5)],  # type-index
        [item.uuid for item in h200()[0].instances],
    ],
)
def test_cdi_lists_mig_devices_and_not_their_gpu(names: list[str]) -> None:
    host = machine(h200(), cdi_devices=tuple(f"nvidia.com/gpu={name}" for name in [*names, "all"]))
    found = host_checks.runtime(host, "cdi")
    assert {item.status for item in found} == {"pass"}
    assert len(found) == 5
    stale = replace(host, cdi_devices=("nvidia.com/gpu=0:0", "nvidia.com/gpu=all"))
    failed = of(host_checks.runtime(stale, "cdi"), "fail")
    assert [item.gpu_uuid for item in failed] == [item.uuid for item in h200()[0].instances[1:]]
    assert "MIG layout" in failed[0].remedy


def test_without_ids_series_are_unknown_and_no_stranger_is_invented() -> None:
    host = machine((parse(fact(seen.H200_ROW, listing=seen.H200_LIST)).gpus[0],))
    what = evidence(machine(h200()))
    found = metric_checks.exporter(host, replace(what, hosts=(host,)), LIMITS)
    assert {item.status for item in found} == {"unknown"}


def test_the_chain_passes_the_operators_strategy_on() -> None:
    settings = parse_settings({"gpu_operator": {"mig_strategy": "mixed"}})
    limits = chain.limits(settings)
    assert limits.strategy == "mixed"
    assert limits.every_sensor
    assert not chain.limits(
        parse_settings({"exporter": {"collectors_file": "my.csv"}})
    ).every_sensor


@pytest.mark.parametrize(
    "offers",
    [
        {"mig": OFFER},
        {"labels": {"nvidia.com/mig.config": "all-1g.10gb"}},
        {"labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}},
    ],
)
def test_a_mig_node_whose_host_could_not_be_read_is_not_blamed(offers: dict[str, Any]) -> None:
    unread = Host(node=NODE, expected_gpus=8, error="cannot be reached")
    what = Evidence(hosts=(unread,), nodes={NODE: node(NODE, 1, **offers)})
    assert kubernetes.allocatable(unread, what, 1) == []
    plain = replace(what, nodes={NODE: node(NODE, 7)})
    assert only(kubernetes.allocatable(unread, plain, 1), "fail").node == NODE
