"""Causes: each is found by what really is said, not by what looks like it, and in its order."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpuboot.diagnose import cause_model, details, diagnosis_report
from gpuboot.diagnose.causes import TABLE
from gpuboot.diagnose.causes.pending_causes import reasons
from gpuboot.diagnose.facts import Facts, of
from gpuboot.diagnose.site_recording import ClusterRecording, HostRecording, Recording, from_json
from tests.e2e.diagnose_absence import ABSENCE_FAULTS
from tests.e2e.diagnose_faults import HOST_FAULTS
from tests.e2e.diagnose_operands import OPERAND_FAULTS
from tests.e2e.diagnose_pods import POD_FAULTS
from tests.e2e.diagnose_ways import WAY_FAULTS
from tests.unit import (
    diagnose_cases_absent,
    diagnose_cases_alerting,
    diagnose_cases_ended,
    diagnose_cases_fabric,
    diagnose_cases_hosts,
    diagnose_cases_images,
    diagnose_cases_limits,
    diagnose_cases_metrics,
    diagnose_cases_network,
    diagnose_cases_pods,
    diagnose_cases_policies,
    diagnose_cases_reports,
    diagnose_cases_unready,
    diagnose_cases_words,
    diagnose_evidence_cluster,
    diagnose_evidence_gpus,
    diagnose_evidence_hosts,
)
from tests.unit.diagnose_judged import EvidenceCase
from tests.unit.diagnose_lab_gaps import NOT_IN_THE_LAB
from tests.unit.diagnose_site import (
    Case,
    cause_ids,
    cluster,
    control,
    findings,
    gpu_host,
    lines,
    pod,
    site,
    state,
    waiting,
)

CASES = (
    *diagnose_cases_hosts.CASES,
    *diagnose_cases_fabric.CASES,
    *diagnose_cases_network.CASES,
    *diagnose_cases_pods.CASES,
    *diagnose_cases_absent.CASES,
    *diagnose_cases_alerting.CASES,
    *diagnose_cases_images.CASES,
    *diagnose_cases_limits.CASES,
    *diagnose_cases_metrics.CASES,
    *diagnose_cases_unready.CASES,
    *diagnose_cases_ended.CASES,
    *diagnose_cases_words.CASES,
    *diagnose_cases_reports.CASES,
    *diagnose_cases_policies.CASES,
)
EVIDENCE_CASES = (
    *diagnose_evidence_cluster.CASES,
    *diagnose_evidence_hosts.CASES,
    *diagnose_evidence_gpus.CASES,
    *diagnose_cases_fabric.EVIDENCE_ROWS,
    *diagnose_cases_unready.EVIDENCE_ROWS,
    *diagnose_cases_ended.EVIDENCE_ROWS,
    *diagnose_cases_policies.EVIDENCE_ROWS,
)
BY_ID = {cause.id: cause for cause in TABLE}


def test_a_sound_site_yields_nothing() -> None:
    assert cause_ids(site()) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cause_is_found_and_its_near_miss_is_not(case: Case) -> None:
    by_cause = {finding.cause.id: finding for finding in findings(case.broken)}
    assert case.id in by_cause
    evidence = "\n".join(
        line for finding in by_cause[case.id].sightings for line in finding.evidence
    )
    assert case.message in evidence
    assert case.id not in cause_ids(case.near)


@pytest.mark.parametrize("case", EVIDENCE_CASES, ids=str)
def test_a_symptom_is_no_certain_cause(case: EvidenceCase) -> None:
    """Certain with its own evidence, less where something else explains it, or it is past."""
    confidences = {item.cause.id: item.confidence for item in findings(case.facts)}
    assert confidences.get(case.id) is case.confidence
    assert not case.second_cause or case.second_cause in confidences


def test_all_evidence_is_judged_beside_what_looks_like_it() -> None:
    for name in {case.id for case in EVIDENCE_CASES}:
        kinds = {case.kind for case in EVIDENCE_CASES if case.id == name}
        assert {"present"} < kinds, name


def test_every_cause_is_produced_in_the_lab_where_that_can_be() -> None:
    faults = (*POD_FAULTS, *ABSENCE_FAULTS, *OPERAND_FAULTS, *HOST_FAULTS, *WAY_FAULTS)
    produced = {cause for fault in faults for cause in fault.causes}
    assert produced | set(NOT_IN_THE_LAB) == set(BY_ID)
    assert not produced & set(NOT_IN_THE_LAB)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_cause_comes_first_or_second_of_what_follows_from_nothing(case: Case) -> None:
    roots = [finding.cause.id for finding in findings(case.broken) if not finding.follows]
    assert case.id in roots[:2] or any(case.id in BY_ID[finding].explains for finding in roots)


def test_every_cause_has_its_case() -> None:
    assert {case.id for case in CASES} == set(BY_ID)
    assert len(TABLE) == len(BY_ID)


@pytest.mark.parametrize("cause", TABLE, ids=lambda cause: cause.id)
def test_a_cause_is_whole(cause: cause_model.Cause) -> None:
    assert set(cause.explains) <= set(BY_ID)
    assert cause.id not in cause.explains
    assert cause.on in ("node", "leader", "here")
    assert not cause.remedy.endswith(".")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_command_can_be_typed(case: Case) -> None:
    finding = next(item for item in findings(case.broken) if item.cause.id == case.id)
    for place, command in finding.commands("cp1"):
        assert command
        assert place or BY_ID[case.id].on == "node"
        assert "  " not in command


def test_two_causes_at_once_are_both_named_and_the_root_first() -> None:
    broken = site(
        gpu_host("state\tkubelet inactive dead success 0 loaded", without=["state\tkubelet"]),
        at=cluster(
            pods=(waiting("0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),),
            targets=(
                {
                    "pool": "x",
                    "labels": {"job": "kubelet"},
                    "health": "down",
                    "error": "timeout",
                    "url": "",
                },
            ),
        ),
    )
    results = findings(broken)
    assert [finding.cause.id for finding in results] == [
        "kubelet-stopped", "pending-resource", "prometheus-target-down",
    ]  # fmt: skip
    assert results[2].follows == ("kubelet-stopped",)
    assert results[1].follows == ()


def test_it_works_without_the_api_server_and_with_a_silent_host() -> None:
    off = site(
        gpu_host(error="did not answer within 40 s", state=None),
        control("state\tcontainerd failed failed exit-code 1 loaded", "api\t7 000",
                without=["state\tcontainerd", "api"]),
        cluster(error="refused", pods=(), nodes=(), workloads=(), targets=None),
    )  # fmt: skip
    off = replace(off, cluster=replace(off.cluster, pods=(), monitors=(), prometheuses=()))
    assert cause_ids(off)[:2] == ["containerd-stopped", "host-silent"]
    assert "api-server-down" in cause_ids(off)
    assert diagnosis_report.exit_code(findings(off), off) == 1
    assert "without the cluster" in diagnosis_report.text(findings(off), off, "lab", 3.0)


def test_nothing_found_is_not_said_where_nobody_could_look() -> None:
    blind = replace(site(), cluster=cluster(error="no route", pods=()))
    without_pods = replace(blind, cluster=replace(blind.cluster, pods=()))
    assert diagnosis_report.exit_code((), without_pods) == 2
    assert diagnosis_report.exit_code((), site()) == 0


def test_only_what_concerns_a_pod_or_node() -> None:
    broken = site(
        gpu_host("disk\t/var/log 100 0 4"),
        control("disk\t/ 99 0 4"),
        cluster(pods=(pod("train-0"), waiting("0/2 nodes are available: 2 Insufficient cpu."))),
    )
    all_findings = findings(broken)
    on_node = cause_model.findings_about(all_findings, broken, "", "gpu1")
    assert [item.location for finding in on_node for item in finding.sightings] == ["gpu1"]
    of_pod = cause_model.findings_about(all_findings, broken, "ml/train-0", "")
    assert {finding.cause.id for finding in of_pod} == {"pending-resource"}


def test_the_scheduler_s_words() -> None:
    text = (
        "0/3 nodes are available: 1 node(s) had untolerated taint "
        "{node-role.kubernetes.io/control-plane: }, 2 Insufficient cpu, 2 Insufficient "
        "nvidia.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: "
        "1 Preemption is not helpful for scheduling, 2 No preemption victims found."
    )
    assert reasons(text) == {"resource": (4, "Insufficient cpu; Insufficient nvidia.com/gpu")}
    assert reasons('persistentvolumeclaim "data" not found') == {
        "volume": (0, 'persistentvolumeclaim "data" not found')
    }
    assert reasons("running PreBind plugin: something new") == {}
    unnamed = (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated "
        "taint(s). no new claims to deallocate, preemption: 0/2 nodes are available"
    )
    assert list(reasons(unnamed, controls=1)) == ["resource"]
    assert list(reasons(unnamed, controls=0)) == ["resource", "taint"]


def test_a_recording_comes_back_as_it_was_and_gives_typed_state() -> None:
    host_recording = HostRecording(
        node="gpu1", host="10.0.0.12", role="worker", gpus=1, began=100.0, ended=105.0,
        before=700.0, after=706.0, parts={"diagnose": tuple(lines())},
    )  # fmt: skip
    recording = Recording(
        site="lab", leader="cp1", hosts=(host_recording,), cluster=ClusterRecording(error="x")
    )
    assert from_json(recording.to_json()) == recording
    facts = of(recording)
    assert facts.hosts[0].details == details.parse(lines())
    assert facts.hosts[0].skew_s == -600.0
    assert facts.hosts[0].state is None  # the fact is missing: the others tell all the same
    assert diagnosis_report.unread(facts) == [
        "the cluster could not be asked: x",
        "gpu1: its answer was cut off",
    ]


@pytest.mark.parametrize(
    ("started_at", "ended_at", "skew"),
    [(100.0, 105.0, 0.0), (107.0, 112.0, 6.0), (98.0, 103.0, -2.0)],
)
def test_the_skew_of_a_clock_is_what_is_left_beside_the_way(
    started_at: float, ended_at: float, skew: float
) -> None:
    """The command took 5 s by its own clock and 6 s by ours: it began in the first second."""
    host_recording = HostRecording(
        node="a", host="a", role="worker", gpus=0, began=started_at, ended=ended_at, before=100.0,
        after=106.0,
    )  # fmt: skip
    assert host_recording.skew_s == skew


def test_the_document_has_all_that_the_text_has() -> None:
    broken = site(gpu_host("disk\t/var/log 100 0 4"))
    document = json.loads(diagnosis_report.document(findings(broken), broken, "lab", 12.3))
    [cause] = document["causes"]
    assert (cause["id"], cause["confidence"]) == ("disk-full", "certain")
    assert cause["seen"][0]["node"] == "gpu1"
    assert cause["commands"][0]["on"] == "gpu1"
    assert cause["page"] == "docs/causes.md#disk-full"
    output = diagnosis_report.text(findings(broken), broken, "lab", 12.3)
    assert all(word in output for word in ("gpu1$ sudo du", "certain", "1 cause found in 12 s"))


def test_state_is_read_whatever_is_missing() -> None:
    assert cause_ids(Facts()) == []
    assert state().gpus
    assert details.parse(["end\tok"]) == details.Details()
