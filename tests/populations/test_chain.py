"""Every kind of GPU, from the bus to Prometheus: proven when it is well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.verify.findings import verdict
from tests.populations.chain import SETTINGS, clock, format_findings, verify_machine
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine
from tests.populations.model import Card, Instance, Population
from tests.populations.offers import devices
from tests.populations.opposites import RELATED, WELL, Opposite, all_of, without_derived
from tests.populations.page import Page
from tests.populations.table import POPULATIONS, RENAMED, SLICED

__all__ = ["clock"]


# Ways in which containers get GPUs; with CDI alone, the device plugin is the site's own.
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "runtimeclass": {"runtime": {"mode": "runtimeclass"}},
    "cdi": {
        "runtime": {"mode": "cdi"},
        "gpu_operator": {"enabled": False},
        "exporter": {**SETTINGS["exporter"], "kind": "chart"},
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_a_healthy_machine_is_proven(population: Population, way: str) -> None:
    cluster = Cluster(of=population, page=Page(population))
    findings = verify_machine(Machine(population), cluster, **WAYS[way])
    assert verdict(findings) == "proven", format_findings(findings)


OPPOSITES = [
    pytest.param(opposite, subject, id=f"{subject}: {opposite}")
    for opposite in WELL
    for subject in (*POPULATIONS.values(), *RELATED)
    if opposite.of(subject)
]


@pytest.mark.parametrize(("opposite", "population"), OPPOSITES)
def test_it_is_proven_where_a_derived_value_is_otherwise(
    opposite: Opposite, population: Population
) -> None:
    cluster = Cluster(of=population, page=opposite.page(Page(population)))
    findings = verify_machine(Machine(population), cluster)
    assert verdict(findings) == "proven", format_findings(findings)


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_every_gpu_and_instance_has_computed(population: Population) -> None:
    cluster = Cluster(of=population, page=Page(population))
    findings = verify_machine(Machine(population), cluster)
    computed = {finding.gpu_uuid for finding in findings if finding.link == "workload"}
    assert computed == devices(population).keys()
    containers = [item for pod in cluster.created for item in pod["spec"]["containers"]]
    requested = [
        int(count) for item in containers for count in item["resources"]["limits"].values()
    ]
    assert sum(requested) == len(computed)


@pytest.mark.parametrize("population", [*POPULATIONS.values(), *RELATED], ids=str)
def test_it_is_proven_where_all_derived_values_are_otherwise(population: Population) -> None:
    findings = verify_machine(
        Machine(population), Cluster(of=population, page=all_of(Page(population)))
    )
    assert verdict(findings) == "proven", format_findings(findings)
    (health, *_) = [finding for finding in findings if finding.link == "health"]
    assert "DCGM says: " in health.detail, "what DCGM says stays visible"


def test_shared_gpus_are_proven_with_each_pod_named() -> None:
    sliced = {**WAYS["default"], "gpu_operator": {"time_slices": SLICED.shares}}
    findings = verify_machine(
        Machine(SLICED), Cluster(of=SLICED, page=all_of(Page(SLICED))), **sliced
    )
    assert verdict(findings) == "proven", format_findings(findings)
    (finding,) = [item for item in findings if item.link == "attribution"]
    assert [f"(share {number})" in finding.detail for number in range(5)] == [True] * 4 + [False]


@pytest.mark.parametrize(("way", "expected"), [("cdi", "proven"), ("default", "failed")])
def test_gpus_that_a_plugin_of_the_site_s_shares_and_renames_are_proven(
    way: str, expected: str
) -> None:
    """Pods asked for `nvidia.com/gpu`, which such a node lacks; the operator's are as set."""
    labels = {**RENAMED.labels, "nvidia.com/gpu.replicas": "4"}
    renamed = replace(RENAMED, labels=labels)
    cluster = Cluster(of=renamed, page=all_of(Page(renamed)))
    findings = verify_machine(Machine(renamed), cluster, **WAYS[way])
    assert verdict(findings) == expected, format_findings(findings)
    links = {finding.link for finding in findings if finding.status == "fail"}
    assert ("allocatable" in links) == (expected == "failed")


class LastPod(Page):
    """An exporter without KUBERNETES_VIRTUAL_GPUS: the last pod stands for all that share a GPU."""

    def _share_labels(self, card: Card, instance: Instance | None) -> Iterator[dict[str, str]]:
        for share_labels in list(super()._share_labels(card, instance))[-1:]:
            yield {key: value for key, value in share_labels.items() if key != "vgpu"}


def test_an_exporter_that_names_one_pod_of_several_fails() -> None:
    sliced = {**WAYS["default"], "gpu_operator": {"time_slices": SLICED.shares}}
    findings = verify_machine(Machine(SLICED), Cluster(of=SLICED, page=LastPod(SLICED)), **sliced)
    failed = [item for item in findings if item.status == "fail"]
    assert [item.link for item in failed] == ["attribution"], format_findings(findings)
    assert "KUBERNETES_VIRTUAL_GPUS" in failed[0].remedy


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_blank_values_are_no_values(population: Population) -> None:
    """Exporters up to 4.0 print DCGM's number for `not supported`."""
    findings = verify_machine(
        Machine(population), Cluster(of=population, page=Page(population, blanks=True))
    )
    assert verdict(findings) == "proven", format_findings(findings)


@pytest.mark.parametrize(
    "population", [subject for subject in POPULATIONS.values() if subject.instances], ids=str
)
def test_an_instance_that_cannot_compute_is_named_alone(population: Population) -> None:
    bad = population.instances[-1][1].uuid
    cluster = Cluster(of=population, page=Page(population), fails={bad: "Test FAILED\n"})
    failed = [
        finding
        for finding in verify_machine(Machine(population), cluster)
        if finding.status == "fail"
    ]
    assert [(finding.link, finding.gpu_uuid) for finding in failed] == [("workload", bad)]


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_it_is_proven_without_any_derived_value(population: Population) -> None:
    """Where nvidia-smi and the bus tell of a GPU, no value of the exporter is needed alone."""
    page = Page(population, change=without_derived(population))
    findings = verify_machine(Machine(population), Cluster(of=population, page=page))
    assert verdict(findings) == "proven", format_findings(findings)
