"""The chain as a whole, the verdict and the exit codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.pods import Pod
from gpuboot.config.exit_codes import exit_code
from gpuboot.config.settings import parse_settings
from gpuboot.verify.checks import host_checks, proof_chain
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import (
    GPU_LINKS,
    Finding,
    FindingBuilder,
    Verdict,
    from_json,
    verdict,
    worst,
)
from tests.unit.evidence import SIZES, evidence, gpu, host, metrics, node, of, scrape, series, uuid

SETTINGS = parse_settings({"monitoring": {"grafana": False}, "exporter": {"scrape_interval": "2s"}})


def test_a_sound_cluster_is_proven_at_every_link_of_every_gpu() -> None:
    findings = proof_chain.evaluate(evidence(), SETTINGS)
    assert verdict(findings) == "proven"
    proven = {(f.node, f.gpu_uuid, f.link) for f in findings if f.gpu_uuid}
    assert proven == {
        (name, uuid(name, index), link)
        for name, count in SIZES.items()
        for index in range(count)
        for link in GPU_LINKS.keys() - host_checks.NAMES
    }
    assert {f.link for f in findings if not f.gpu_uuid} == {
        "targets", "rules", "alertmanager", "alerting", "services", "isolation",
    }  # fmt: skip


def test_above_a_lost_gpu_nothing_is_judged_and_nothing_else_fails() -> None:
    lost_host = host(gpus=(gpu("gpu1", 0), gpu("gpu1", 1, index=None, is_lost=True)))
    sound = evidence()
    observed = replace(
        sound,
        hosts=(lost_host, sound.hosts[1]),
        workload_results=tuple(t for t in sound.workload_results if t.uuids != (uuid("gpu1", 1),)),
        nodes={**sound.nodes, "gpu1": node("gpu1", 1)},
        metrics=metrics(
            exporters=(scrape("gpu1", 1), scrape("gpu2", 4)),
            series=series("gpu1", 1) + series("gpu2", 4),
        ),
    )
    findings = proof_chain.evaluate(observed, SETTINGS)
    assert [(f.link, f.gpu_uuid) for f in of(findings, "fail")] == [("nvidia-smi", uuid("gpu1", 1))]
    above = {f.link for f in of(findings, "not_covered")}
    assert above == {*GPU_LINKS} - {"pci", "driver", "nvidia-smi", *host_checks.NAMES}
    assert verdict(findings) == "failed"


def test_a_busy_gpu_keeps_the_cluster_from_being_proven() -> None:
    sound = evidence()
    observed = replace(
        sound,
        workload_results=sound.workload_results[1:],
        gpu_pods=(Pod(namespace="ml", name="t", node="gpu1", devices={"nvidia.com/gpu": 1}),),
    )
    findings = proof_chain.evaluate(observed, SETTINGS)
    assert of(findings, "fail") == []
    assert verdict(findings) == "not_covered"


def test_a_host_that_nobody_could_read_is_unknown_and_failed_once_it_is_down() -> None:
    sound = evidence()
    dark = replace(host("gpu1", 2, gpus=()), error="cannot be reached")
    observed = replace(sound, hosts=(dark, sound.hosts[1]))
    assert verdict(proof_chain.evaluate(observed, SETTINGS)) == "not_covered"
    down = {**observed.nodes, "gpu1": replace(observed.nodes["gpu1"], ready=False)}
    failed = of(proof_chain.evaluate(replace(observed, nodes=down), SETTINGS), "fail")
    assert [(f.node, f.detail) for f in failed] == [("gpu1", "gpu1 is not Ready")]


def test_an_inventory_without_gpus_proves_nothing() -> None:
    findings = proof_chain.evaluate(Evidence(hosts=(), nodes={}, metrics=metrics()), SETTINGS)
    assert verdict(findings) == "not_covered"


def test_without_monitoring_its_links_do_not_exist() -> None:
    off = parse_settings({"monitoring": {"enabled": False}})
    assert {f.link for f in proof_chain.evaluate(evidence(), off)} == (
        set(GPU_LINKS) - {"prometheus", "attribution", *host_checks.NAMES}
        | {"services", "isolation"}
    )


PASS = FindingBuilder("pci", "c", "n").passed("ok", "GPU-1")
FAIL = FindingBuilder("pci", "c", "n").failed("bad", "fix")
OPEN = FindingBuilder("pci", "c", "n").not_covered("busy")
UNKNOWN = FindingBuilder("pci", "c", "n").unknown("no answer")


@pytest.mark.parametrize(
    ("findings", "word", "code"),
    [
        ([PASS], "proven", 0),
        ([PASS, FAIL, OPEN], "failed", 1),
        ([PASS, OPEN], "not_covered", 2),
        ([PASS, UNKNOWN], "not_covered", 2),
        ([], "not_covered", 2),
        ([FindingBuilder("rules", "c").passed("12 rules")], "not_covered", 2),
    ],
)
def test_verdict_and_exit_code(findings: list[Finding], word: Verdict, code: int) -> None:
    assert verdict(findings) == word
    assert exit_code(word) == code


def test_worst_of_findings() -> None:
    assert worst([PASS, OPEN, UNKNOWN, FAIL]) == "fail"
    assert worst([PASS, OPEN, UNKNOWN]) == "unknown"
    assert worst([PASS, OPEN]) == "not_covered"
    assert worst([]) == "unknown"


def test_a_failure_needs_a_remedy_and_a_link_that_exists() -> None:
    with pytest.raises(ValueError, match="without a remedy"):
        FindingBuilder("pci", "c").failed("bad", "")
    with pytest.raises(ValueError, match="no link"):
        FindingBuilder("bus", "c").passed("ok")


def test_findings_survive_json() -> None:
    for finding in (PASS, FAIL, OPEN, UNKNOWN):
        assert from_json(finding.to_json()) == finding


def test_a_sample_may_miss_eight_intervals_and_be_a_minute_old() -> None:
    old = evidence(
        metrics=metrics(series=[replace(sample, age_s=61.0) for sample in series("gpu1", 2)])
    )

    def prometheus(data: dict[str, Any]) -> set[str]:
        findings = proof_chain.evaluate(old, parse_settings(data))
        return {f.status for f in findings if f.link == "prometheus" and f.node == "gpu1"}

    assert prometheus({}) == {"pass"}
    assert "pass" not in prometheus({"exporter": {"scrape_interval": "5s"}})
