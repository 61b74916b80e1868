"""Answers that end early, are empty, or lack half of a line: never a traceback, never a pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpuboot.hosts import node_state
from gpuboot.hosts.fact_output import FactOutputError
from gpuboot.verify import gpu_state
from gpuboot.verify.checks import operating_system
from gpuboot.verify.findings import verdict
from tests.populations.chain import clock, format_findings, verify_machine
from tests.populations.cluster import Cluster
from tests.populations.machine import Machine
from tests.populations.model import Population
from tests.populations.page import Page
from tests.populations.table import POPULATIONS

__all__ = ["clock"]

KINDS = pytest.mark.parametrize("population", POPULATIONS.values(), ids=str)


def statuses(machine: Machine, node: list[str], nvidia: list[str]) -> set[str]:
    """What the links of the operating system say; "refused": the answer is not used at all."""
    try:
        state, gpus = node_state.parse(node), gpu_state.parse(nvidia)
    except FactOutputError:
        return {"refused"}
    host = gpu_state.host(machine.node, state, gpus, None)
    return {finding.status for finding in operating_system.evaluate(host, "default")}


def halves(lines: list[str]) -> Iterator[list[str]]:
    for number, line in enumerate(lines):
        yield [*lines[:number], line[: len(line) // 2], *lines[number + 1 :]]


@KINDS
def test_an_answer_that_ends_early_proves_nothing(population: Population) -> None:
    machine = Machine(population)
    node, nvidia = machine.node_fact(), machine.nvidia_fact()
    assert statuses(machine, node, nvidia) == {"pass"}
    for number in range(len(nvidia)):
        assert statuses(machine, node, nvidia[:number]) != {"pass"}, nvidia[number]
    for number in range(len(node)):
        assert statuses(machine, node[:number], nvidia) != {"pass"}, node[number]


@KINDS
def test_a_line_that_ends_early_is_no_traceback(population: Population) -> None:
    machine = Machine(population)
    node, nvidia = machine.node_fact(), machine.nvidia_fact()
    for part in halves(nvidia):
        assert statuses(machine, node, part)
    for part in halves(node):
        assert statuses(machine, part, nvidia)


@dataclass(frozen=True)
class Cut(Page):
    """An exporter that answers with the first part of its page.

    + share: of the whole
    """

    share: float = 1

    def text(self) -> str:
        full_text = super().text()
        return full_text[: int(len(full_text) * self.share)]


# Each within a field: one that ends between two is that of an exporter without the later ones. That
# a page was cut there on its way is seen before, as tests/unit/test_cut_answers.py shows.
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.3, 0.61])
def test_a_page_of_the_exporter_that_ends_early_is_named(share: float) -> None:
    population = POPULATIONS["h100-sxm"]
    page = Cut(population, share=share)
    findings = verify_machine(Machine(population), Cluster(of=population, page=page))
    assert verdict(findings) == "failed", format_findings(findings)
    assert {item.link for item in findings if item.status == "fail"} & {"exporter"}, (
        format_findings(findings)
    )
