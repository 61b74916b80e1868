"""MIG: a sound node is proven by MIG UUID, and what is broken on one is found.

The layouts are those of real machines (tests/unit/recordings.py).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit import recordings as seen
from tests.unit.evidence import node, of, only
from tests.unit.mig_evidence import (
    ALL,
    LIMITS,
    NODE,
    evaluate,
    evidence,
    machine,
    uniform,
    with_series,
)


def test_a_sound_mixed_node_is_proven_by_mig_uuid() -> None:
    """One slice per series is no double scrape, and a whole GPU is judged as always."""
    findings = evaluate(evidence(machine()))
    assert {item.status for item in findings} == {"pass"}
    of_pods = {item.gpu_uuid for item in findings if item.link in {"workload", "attribution"}}
    assert of_pods == {*ALL.values(), seen.A100_WHOLE}
    physical = {item.gpu_uuid for item in findings if item.link == "nvidia-smi"}
    assert physical == {seen.A100_CUT, seen.A100_WHOLE}
    (layout,) = [
        f.detail for f in findings if f.link == "nvidia-smi" and f.gpu_uuid == seen.A100_CUT
    ]
    assert "MIG: 4 x 1g.10gb, 1 x 3g.40gb" in layout


def test_under_single_each_instance_is_an_nvidia_com_gpu() -> None:
    host = machine(uniform())
    observed = evidence(host, "single", nodes={NODE: node(NODE, 7)})
    assert {item.status for item in evaluate(observed)} == {"pass"}
    assert {trial.resource for trial in observed.workload_results} == {"nvidia.com/gpu"}
    six = replace(
        observed, nodes={NODE: node(NODE, 6)}, workload_results=observed.workload_results[:6]
    )
    missing = only(of(evaluate(six), "fail", "allocatable"), "fail")
    assert missing.gpu_uuid == host.devices[6].uuid
    assert "6 of 7 nvidia.com/gpu" in missing.detail


def test_the_nodes_own_label_wins_over_the_setting() -> None:
    observed = evidence(machine())
    assert {item.status for item in evaluate(observed, replace(LIMITS, strategy="single"))} == {
        "pass"
    }


def test_a_dead_device_plugin_fails_on_a_mig_node() -> None:
    """It was `not covered`: 0 devices were taken for a MIG layout."""
    dead = node(NODE, 0, labels={"nvidia.com/mig.strategy": "mixed"})
    findings = evaluate(evidence(machine(), nodes={NODE: dead}, workload_results=()))
    failed = of(findings, "fail", "allocatable")
    assert sorted(item.detail for item in failed) == [
        "0 of 1 nvidia.com/gpu allocatable",
        "0 of 1 nvidia.com/mig-3g.40gb allocatable",
        "0 of 4 nvidia.com/mig-1g.10gb allocatable",
    ]
    assert all("device plugin" in item.remedy for item in failed)


@pytest.mark.parametrize("uuid", [seen.A100_WHOLE, ALL[9]])
def test_a_failed_computation_on_a_mixed_node_fails(uuid: str) -> None:
    observed = evidence(machine())
    trials = tuple(
        replace(item, passed=False, error="log: Test FAILED") if item.uuids == (uuid,) else item
        for item in observed.workload_results
    )
    failed = only(evaluate(replace(observed, workload_results=trials)), "fail")
    assert (failed.link, failed.gpu_uuid) == ("workload", uuid)


def test_a_mig_device_that_no_pod_got_is_not_covered_by_its_name() -> None:
    observed = evidence(machine())
    remaining = tuple(item for item in observed.workload_results if item.uuids != (ALL[2],))
    findings = of(
        evaluate(replace(observed, workload_results=remaining)), "not_covered", "workload"
    )
    assert [item.gpu_uuid for item in findings] == [ALL[2]]
    assert "nvidia.com/mig-3g.40gb" in findings[0].detail


def test_a_slice_that_the_exporter_lacks_fails_for_its_mig_device() -> None:
    observed = evidence(machine())
    without = tuple(item for item in observed.metrics.exporters[0].readings if item.slice != "9")
    findings = of(evaluate(with_series(observed, without)), "fail")
    assert {(item.link, item.gpu_uuid) for item in findings} == {
        ("exporter", ALL[9]),
        ("prometheus", ALL[9]),
    }
    assert f"UUID {seen.A100_CUT}, GPU_I_ID 9" in findings[0].detail


@pytest.mark.parametrize("omitted_slice", ["7", ""])
def test_a_slice_or_a_card_without_series_fails(omitted_slice: str) -> None:
    observed = evidence(machine())
    remaining = tuple(r for r in observed.metrics.exporters[0].readings if r.slice != omitted_slice)
    findings = evaluate(with_series(observed, remaining))
    not_passed = {item.link: item.status for item in findings if item.status != "pass"}
    assert not_passed["exporter"] == not_passed["prometheus"] == "fail"


def test_a_slice_that_the_host_has_no_more_fails() -> None:
    observed = evidence(machine())
    old = replace(observed.metrics.exporters[0].readings[0], slice="14")
    findings = evaluate(with_series(observed, (*observed.metrics.exporters[0].readings, old)))
    failed = only(findings, "fail")
    assert "GPU_I_ID 14, which the node lacks" in failed.detail


def test_a_slice_that_is_scraped_twice_fails() -> None:
    observed = evidence(machine())
    series = observed.metrics.series or ()
    twice = replace(observed.metrics, series=(*series, series[0]))
    failed = only(evaluate(replace(observed, metrics=twice)), "fail")
    assert "2 series of the same metric" in failed.detail
    assert (failed.link, failed.gpu_uuid) == ("prometheus", observed.hosts[0].devices[0].uuid)


def test_a_slice_that_names_another_slices_pod_fails() -> None:
    observed = evidence(machine())
    first, second, *remaining = observed.metrics.exporters[0].readings
    findings = evaluate(with_series(observed, (replace(first, pod=second.pod), second, *remaining)))
    failed = only(findings, "fail")
    assert (failed.link, failed.gpu_uuid) == ("attribution", observed.hosts[0].devices[0].uuid)


def test_a_slice_may_lack_memory_and_a_missing_temperature_is_found() -> None:
    """NVIDIA/dcgm-exporter issue 512: FB fields are missing of H100 GPU instances."""
    observed = evidence(machine())
    bare = tuple(
        replace(r, memory=None) if r.slice else r for r in observed.metrics.exporters[0].readings
    )
    findings = evaluate(with_series(observed, bare))
    assert {item.status for item in findings} == {"pass"}
    assert {"35 °C, 102.176 W, no device memory"} == {
        f.detail for f in findings if f.link == "exporter" and f.gpu_uuid != seen.A100_WHOLE
    }
    cold = tuple(replace(r, temperature=None) if r.slice == "2" else r for r in bare)
    failed = only(evaluate(with_series(observed, cold)), "fail")
    assert failed.gpu_uuid == ALL[2]
    assert "DCGM_FI_DEV_GPU_TEMP" in failed.detail
