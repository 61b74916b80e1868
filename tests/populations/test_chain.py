"""Every kind of GPU, from the bus to Prometheus: proven when it is well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpuboot.verify.findings import verdict
from tests.populations.chain import SETTINGS, clock, judged, told
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine
from tests.populations.model import Card, Instance, Population
from tests.populations.offers import devices
from tests.populations.opposites import RELATED, WELL, Opposite, all_of, without_derived
from tests.populations.page import Page
from tests.populations.table import POPULATIONS, SLICED

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
    findings = judged(Machine(population), cluster, **WAYS[way])
    assert verdict(findings) == "proven", told(findings)


OPPOSITES = [
    pytest.param(opposite, one, id=f"{one}: {opposite}")
    for opposite in WELL
    for one in (*POPULATIONS.values(), *RELATED)
    if opposite.of(one)
]


@pytest.mark.parametrize(("opposite", "population"), OPPOSITES)
def test_it_is_proven_where_a_derived_value_is_otherwise(
    opposite: Opposite, population: Population
) -> None:
    cluster = Cluster(of=population, page=opposite.page(Page(population)))
    findings = judged(Machine(population), cluster)
    assert verdict(findings) == "proven", told(findings)


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_every_gpu_and_instance_has_computed(population: Population) -> None:
    cluster = Cluster(of=population, page=Page(population))
    findings = judged(Machine(population), cluster)
    computed = {found.gpu_uuid for found in findings if found.link == "workload"}
    assert computed == devices(population).keys()
    containers = [item for pod in cluster.created for item in pod["spec"]["containers"]]
    asked = [int(count) for item in containers for count in item["resources"]["limits"].values()]
    assert sum(asked) == len(computed)


@pytest.mark.parametrize("population", [*POPULATIONS.values(), *RELATED], ids=str)
def test_it_is_proven_where_all_derived_values_are_otherwise(population: Population) -> None:
    findings = judged(Machine(population), Cluster(of=population, page=all_of(Page(population))))
    assert verdict(findings) == "proven", told(findings)
    (health, *_) = [found for found in findings if found.link == "health"]
    assert "DCGM says: " in health.detail, "what DCGM says stays visible"


def test_shared_gpus_are_proven_with_each_pod_named() -> None:
    sliced = {**WAYS["default"], "gpu_operator": {"time_slices": SLICED.shares}}
    findings = judged(Machine(SLICED), Cluster(of=SLICED, page=all_of(Page(SLICED))), **sliced)
    assert verdict(findings) == "proven", told(findings)
    (named,) = [found for found in findings if found.link == "attribution"]
    assert [f"(share {number})" in named.detail for number in range(5)] == [True] * 4 + [False]


class LastPod(Page):
    """An exporter without KUBERNETES_VIRTUAL_GPUS: the last pod stands for all that share a GPU."""

    def _held(self, card: Card, one: Instance | None) -> Iterator[dict[str, str]]:
        for held in list(super()._held(card, one))[-1:]:
            yield {key: value for key, value in held.items() if key != "vgpu"}


def test_an_exporter_that_names_one_pod_of_several_fails() -> None:
    sliced = {**WAYS["default"], "gpu_operator": {"time_slices": SLICED.shares}}
    findings = judged(Machine(SLICED), Cluster(of=SLICED, page=LastPod(SLICED)), **sliced)
    failed = [found for found in findings if found.status == "fail"]
    assert [found.link for found in failed] == ["attribution"], told(findings)
    assert "KUBERNETES_VIRTUAL_GPUS" in failed[0].remedy


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_blank_values_are_no_values(population: Population) -> None:
    """Exporters up to 4.0 print DCGM's number for `not supported`."""
    findings = judged(
        Machine(population), Cluster(of=population, page=Page(population, blanks=True))
    )
    assert verdict(findings) == "proven", told(findings)


@pytest.mark.parametrize(
    "population", [one for one in POPULATIONS.values() if one.instances], ids=str
)
def test_an_instance_that_cannot_compute_is_named_alone(population: Population) -> None:
    bad = population.instances[-1][1].uuid
    cluster = Cluster(of=population, page=Page(population), fails={bad: "Test FAILED\n"})
    failed = [found for found in judged(Machine(population), cluster) if found.status == "fail"]
    assert [(found.link, found.gpu_uuid) for found in failed] == [("workload", bad)]


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)
def test_it_is_proven_without_any_derived_value(population: Population) -> None:
    """Where nvidia-smi and the bus tell of a GPU, no value of the exporter is needed alone."""
    page = Page(population, change=without_derived(population))
    findings = judged(Machine(population), Cluster(of=population, page=page))
    assert verdict(findings) == "proven", told(findings)
