"""How much a verification tries: what the level quick leaves out, and what it must not say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.verify import levels
from gpuboot.verify.checks import proof_chain
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import DEEP_LINKS, LINKS
from gpuboot.verify.history.events import changes
from gpuboot.verify.history.history_files import note, read, read_last
from gpuboot.verify.report import Report, build, load, write
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from tests.unit.evidence import evidence, uuid
from tests.unit.reports import broken, report, text

NODES = (
    Node("cp1", "cp1", "10.0.0.1", "control_plane", 0, True),
    Node("10.0.0.2", "gpu1", "10.0.0.2", "worker", 2, False),
    Node("10.0.0.3", "gpu2", "10.0.0.3", "worker", 4, False),
)
QUICK = parse_settings({"exporter": {"scrape_interval": "2s"}, "verify": {"level": "quick"}})
WITHOUT_PODS = replace(evidence(), workload_results=(), service_probes=())


def quick(observed: Evidence = WITHOUT_PODS, **fields: Any) -> Report:
    findings = proof_chain.evaluate(observed, QUICK)
    links = proof_chain.required_links(observed, QUICK)
    return build(
        "lab", "2026-11-21T14:00:00Z", 3.1, observed.hosts, findings, links, level="quick", **fields
    )


def test_quick_has_no_link_that_takes_a_pod_and_is_no_proof() -> None:
    quick_report = quick()
    tried_links = {item.link for item in quick_report.findings}
    assert tried_links & {"workload", "attribution", "services"} == set()
    assert tried_links >= {"pci", "driver", "nvidia-smi", "allocatable", "exporter", "prometheus"}
    assert (quick_report.verdict, quick_report.exit) == ("answering", 0)
    assert (quick_report.totals["proven"], quick_report.totals["answering"]) == (0, 6)


def test_quick_fails_where_something_does_not_answer() -> None:
    observed = replace(WITHOUT_PODS, nodes={})
    quick_report = quick(observed)
    assert (quick_report.verdict, quick_report.exit) == ("failed", 1)
    assert not any(item.link in levels.left_out("quick") for item in quick_report.findings)


def test_without_pods_the_standard_level_is_not_covered() -> None:
    full_report = report(WITHOUT_PODS)
    assert (full_report.verdict, full_report.exit) == ("not_covered", 2)


def test_every_form_of_the_report_says_that_nothing_was_computed(tmp_path: Path) -> None:
    quick_report = quick(nodes=("gpu1",))
    assert "ANSWERING  6 of 6 GPUs answer; nothing was computed on them" in text(quick_report)
    assert "only these nodes: gpu1" in text(quick_report)
    page = html(quick_report)
    assert "Every GPU answers; nothing was computed" in page
    assert "level quick" in page
    assert "Only these nodes: gpu1" in page
    assert "proven at every link" not in page
    assert '<property name="level" value="quick" />' in junit(quick_report)
    write(quick_report, tmp_path)
    assert load(tmp_path / "verify.json") == quick_report
    data = json.loads((tmp_path / "verify.json").read_text())
    assert (data["level"], data["nodes"], data["verdict"]) == ("quick", ["gpu1"], "answering")


def test_in_the_history_quick_is_no_proof_and_ends_no_fault(tmp_path: Path) -> None:
    kinds = {event.kind for events in changes(quick(), {}).values() for event in events}
    assert kinds == {"first seen"}
    faulty_gpu = uuid("gpu1", 1)
    note(broken(), tmp_path)
    assert faulty_gpu not in note(replace(quick(), started="2026-11-22T14:00:00Z"), tmp_path)
    state = read(tmp_path)[faulty_gpu].state
    assert state is not None
    assert state.kind == "failed"
    assert read_last(tmp_path)["lab"].level == "quick"


def test_some_nodes_are_not_the_newest_of_a_cluster(tmp_path: Path) -> None:
    note(report(evidence()), tmp_path)
    note(replace(quick(nodes=("gpu1",)), started="2026-11-23T14:00:00Z"), tmp_path)
    assert read_last(tmp_path)["lab"].at == "2026-11-21T14:00:00Z"


def test_nodes_are_chosen_by_both_of_their_names() -> None:
    selected = levels.scope("", "gpu1, 10.0.0.3,gpu1")
    assert [node.name for node in selected.selected(NODES)] == ["gpu1", "gpu2"]
    assert selected.names(NODES) == ("gpu1", "gpu2")
    assert levels.ALL.names(NODES) == ()
    assert [node.name for node in levels.ALL.selected(NODES)] == ["gpu1", "gpu2"]
    assert selected.problems(NODES) == []


@pytest.mark.parametrize("name", ["gpu9", "cp1"])
def test_a_node_without_gpus_is_refused_by_name(name: str) -> None:
    (problem,) = levels.scope("quick", f"gpu1,{name}").problems(NODES)
    assert name in problem.cause
    assert "gpu1, gpu2" in problem.remedy


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="quick, standard, deep"):
        levels.scope("thorough", "")


def test_links_that_are_left_out_exist() -> None:
    assert levels.left_out("quick") <= set(LINKS)
    assert levels.left_out("deep") == set()
    assert levels.left_out("standard") == {*DEEP_LINKS}
