"""Layouts of MIG, and under which names a strategy offers them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import kubernetes_checks, layout_checks, operating_system, proof_chain
from gpuboot.verify.checks import metrics_checks as metric_checks
from gpuboot.verify.devices import Device, Gpu, Host
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.gpu_state import parse
from tests.unit import recordings as seen
from tests.unit.evidence import node, of, only
from tests.unit.mig_evidence import (
    ALL,
    LIMITS,
    NODE,
    OFFER,
    evaluate,
    evidence,
    machine,
    reading,
    uniform,
    with_series,
)
from tests.unit.test_mig_devices import fact


@pytest.mark.parametrize(("strategy", "status"), [("mixed", "not_covered"), ("single", "fail")])
def test_mig_without_instances_is_told_and_never_passes(strategy: str, status: str) -> None:
    empty = replace(seen.MIXED[0], instances=())
    host = machine((empty, seen.MIXED[1]))
    observed = evidence(
        host, strategy, nodes={NODE: node(NODE, 1, labels={"nvidia.com/mig.strategy": strategy})}
    )
    parent = reading(Device(empty), pod="", memory=None)
    findings = evaluate(with_series(observed, (parent, reading(Device(seen.MIXED[1])))))
    untold = of(findings, "not_covered")
    assert {item.gpu_uuid for item in untold} == {seen.A100_CUT}
    assert all("no MIG instance" in item.detail for item in untold)
    assert {item.link for item in untold} >= {"runtime", "workload", "attribution"}
    (first,) = [f for f in findings if f.link == "allocatable" and f.status != "pass"]
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
    refusing_node = node(NODE, 0, labels={"nvidia.com/mig.strategy": strategy})
    findings = evaluate(evidence(machine(gpus), nodes={NODE: refusing_node}, workload_results=()))
    failed = only(of(findings, "fail", "allocatable"), "fail")
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
    findings = evaluate(evidence(host))
    failed = only(of(findings, "fail", "allocatable"), "fail")
    assert "1c.3g.71gb, 2c.3g.71gb" in failed.detail
    statuses = {f.gpu_uuid: f.status for f in findings if f.link == "attribution"}
    assert set(statuses.values()) == {"pass"}
    assert len(statuses) == 5


def test_under_none_mig_devices_are_not_covered() -> None:
    """device_map.go: GPUs are offered whole, whether MIG is on or not."""
    undivided_node = node(NODE, 2, labels={"nvidia.com/mig.strategy": "none"})
    observed = evidence(machine(), "none", nodes={NODE: undivided_node})
    findings = evaluate(observed)
    assert of(findings, "fail") == []
    links = {f.link for f in findings if f.status == "not_covered" and f.gpu_uuid in ALL.values()}
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
    findings = operating_system.runtime(host, "cdi")
    assert {item.status for item in findings} == {"pass"}
    assert len(findings) == 5
    stale = replace(host, cdi_devices=("nvidia.com/gpu=0:0", "nvidia.com/gpu=all"))
    failed = of(operating_system.runtime(stale, "cdi"), "fail")
    assert [item.gpu_uuid for item in failed] == [item.uuid for item in h200()[0].instances[1:]]
    assert "MIG layout" in failed[0].remedy


def test_without_ids_series_are_unknown_and_no_stranger_is_invented() -> None:
    host = machine((parse(fact(seen.H200_ROW, listing=seen.H200_LIST)).gpus[0],))
    observed = evidence(machine(h200()))
    findings = metric_checks.exporter(host, replace(observed, hosts=(host,)), LIMITS)
    assert {item.status for item in findings} == {"unknown"}


def test_the_chain_passes_the_operators_strategy_on() -> None:
    settings = parse_settings({"gpu_operator": {"mig_strategy": "mixed"}})
    limits = proof_chain.limits(settings)
    assert limits.strategy == "mixed"
    assert limits.every_sensor
    assert not proof_chain.limits(
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
    observed = Evidence(hosts=(unread,), nodes={NODE: node(NODE, 1, **offers)})
    assert kubernetes_checks.allocatable(unread, observed, 1) == []
    plain = replace(observed, nodes={NODE: node(NODE, 7)})
    assert only(kubernetes_checks.allocatable(unread, plain, 1), "fail").node == NODE


def test_instances_other_than_those_of_the_settings_fail() -> None:
    """The card is divided as the DGX's was, which offers all of it; the settings ask for more."""
    expected = {"1g.10gb": 4, "3g.40gb": 1}
    nodes = {NODE: node(NODE, 1, mig=OFFER, labels={"nvidia.com/mig.strategy": "mixed"})}
    matching = evaluate(evidence(machine(layout=expected), nodes=nodes))
    assert not [item for item in of(matching, "fail") if item.link == "allocatable"]
    excess = evaluate(evidence(machine(layout={**expected, "1g.10gb": 5}), nodes=nodes))
    failed = [item for item in of(excess, "fail") if item.link == "allocatable"]
    assert [item.detail for item in failed] == [
        "its MIG instances are not those of the settings: 4 of 5 1g.10gb"
    ]
    assert "nvidia-mig-manager" in failed[0].remedy


def test_shared_instances_are_offered_several_times() -> None:
    host = machine(replicas=3)
    expected = {name: 3 * count for name, count in OFFER.items()}
    assert layout_checks.expected_resources(host, 1, "mixed") == {**expected, "nvidia.com/gpu": 3}
