"""A GPU is proven when each link that its level demands was looked at and passed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import parse_settings
from gpuboot.docker import docker_checks
from gpuboot.verify.checks import operating_system, pod_remedies, proof_chain
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding
from gpuboot.verify.gate_outcome import outcomes
from gpuboot.verify.history.events import changes
from gpuboot.verify.report import Report, build, load, write
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.report_model import GpuRow
from gpuboot.verify.runner import VerificationResult
from gpuboot.verify.stopped import stopped
from tests.unit.evidence import evidence
from tests.unit.reports import report, text

STANDARD = parse_settings({"exporter": {"scrape_interval": "2s"}})
DEEP = parse_settings({"exporter": {"scrape_interval": "2s"}, "verify": {"level": "deep"}})
QUICK = parse_settings({"exporter": {"scrape_interval": "2s"}, "verify": {"level": "quick"}})
CONNECTION_REFUSED = ClusterError(
    "GET /api/v1/nodes: NewConnectionError: [Errno 111] Connection refused"
)
DENIED = ClusterError(
    'POST /api/v1/namespaces/gpuboot-verify-1/pods: 400 admission webhook "pods.example.com" '
    "denied the request: no pods today",
    400,
)
UNREACHABLE = ClusterError(
    "POST /api/v1/namespaces/gpuboot-verify-1/pods: 500 Internal error occurred: failed calling "
    'webhook "pods.example.com": failed to call webhook: Post "https://pods.x.svc:443/?timeout=10s"'
    ': service "pods" not found',
    500,
)


def of(result: VerificationResult, level: Any = "standard") -> Report:
    return build(
        "lab", "2026-11-21T14:00:00Z", 3.1, result.evidence.hosts, result.findings,
        result.required_links, level=level,
    )  # fmt: skip


def only_hosts() -> Evidence:
    observed = evidence()
    return Evidence(hosts=observed.hosts, nodes={}, control_planes=observed.control_planes)


@pytest.mark.parametrize("settings", [STANDARD, QUICK, DEEP])
@pytest.mark.parametrize("error", [CONNECTION_REFUSED, DENIED, UNREACHABLE])
def test_a_verification_that_was_stopped_proves_no_gpu(
    error: ClusterError, settings: Any, tmp_path: Path
) -> None:
    level = settings.verify.level
    result = stopped(error, only_hosts(), settings)
    built_report = of(result, level)
    assert built_report.totals == {
        "gpus": 6, "proven": 0, "answering": 0, "failed": 0, "not_covered": 6,
    }  # fmt: skip
    assert (built_report.verdict, built_report.exit) == ("failed", 1)
    report_path = tmp_path / "verify.json"
    write(built_report, tmp_path)
    data = json.loads(report_path.read_text())
    assert (data["totals"]["proven"], data["verdict"]) == (0, "failed")
    assert all(row["status"] == "not_covered" for row in data["gpus"])
    assert load(report_path).totals == built_report.totals
    assert not any(
        event.kind == "proven" for events in changes(built_report, {}).values() for event in events
    )
    assert outcomes(result.evidence, result.findings) == []
    output = text(built_report)
    if level != "quick":
        assert "0 of 6 GPUs proven" in output
        suites = ET.fromstring(junit(built_report))
        skipped = {case.get("classname") for case in suites.iter("testcase")
                   if case.find("skipped") is not None}  # fmt: skip
        assert "gpu1.workload" in skipped
        assert ">0</b><span>proven" in html(built_report)


def test_a_lower_link_that_passed_is_no_proof_of_those_above() -> None:
    lower = [
        item for host in evidence().hosts for item in operating_system.evaluate(host, "default")
    ]
    result = VerificationResult(
        evidence(), tuple(lower), proof_chain.required_links(evidence(), STANDARD)
    )
    built_report = of(result)
    assert {item.status for item in lower} == {"pass"}
    assert built_report.verdict == "not_covered"
    assert (built_report.totals["proven"], built_report.totals["not_covered"]) == (0, 6)
    assert "nobody looked at it" in text(built_report)


@pytest.mark.parametrize("link", proof_chain.required_links(evidence(), STANDARD)["gpu1"])
def test_each_link_of_the_level_is_needed(link: str) -> None:
    """Without the findings of one link of one node, the GPUs of just that node are not covered."""
    observed = evidence()
    findings = [
        item
        for item in proof_chain.evaluate(observed, STANDARD)
        if (item.node, item.link) != ("gpu1", link)
    ]
    built_report = of(
        VerificationResult(
            observed, tuple(findings), proof_chain.required_links(observed, STANDARD)
        )
    )
    assert (built_report.totals["proven"], built_report.totals["not_covered"]) == (4, 2)
    assert (built_report.verdict, built_report.exit) == ("not_covered", 2)


def test_what_settings_switch_off_is_not_demanded() -> None:
    off = parse_settings({"monitoring": {"enabled": False}})
    links = proof_chain.required_links(evidence(), off)["gpu1"]
    assert {"prometheus", "attribution"} & {*links} == set()
    assert {"workload", "exporter"} <= {*links}
    assert "diag" in proof_chain.required_links(evidence(), DEEP)["gpu1"]
    assert "workload" not in proof_chain.required_links(evidence(), QUICK)["gpu1"]
    docker = docker_checks.required_links(evidence(), STANDARD)["gpu1"]
    assert {"allocatable", "attribution"} & {*docker} == set()
    assert {"workload", "prometheus"} <= {*docker}


def test_deep_tests_that_were_stopped_leave_what_was_proven_before_and_prove_nothing() -> None:
    observed = evidence()
    before = VerificationResult(
        observed,
        tuple(proof_chain.evaluate(observed, DEEP)),
        proof_chain.required_links(observed, DEEP),
    )
    built_report = of(stopped(DENIED, only_hosts(), DEEP, before), "deep")
    row = built_report.gpus[0]
    assert (row.links["workload"], row.links["diag"], row.status) == (
        "pass", "not_covered", "not_covered",
    )  # fmt: skip
    assert built_report.totals["proven"] == 0


def test_a_row_cannot_be_made_that_is_proven_by_links_nobody_looked_at() -> None:
    plain: dict[str, Any] = {
        "node": "a", "uuid": "GPU-1", "pci": "0000:10:00.0", "name": "A100", "memory_mib": 1,
    }  # fmt: skip
    half = GpuRow(**plain, demanded=("pci", "workload"), links={"pci": "pass"})
    assert (half.status, half.links) == (
        "not_covered", {"pci": "pass", "workload": "not_covered"},
    )  # fmt: skip
    assert GpuRow(**plain, demanded=(), links={"pci": "pass"}).status == "not_covered"
    with pytest.raises(TypeError):
        GpuRow(**plain, links={"pci": "pass"})


def cause(result: VerificationResult) -> Finding:
    (finding,) = [item for item in result.findings if item.status == "fail"]
    return finding


def test_the_remedy_is_that_of_what_stopped_it() -> None:
    assert "crictl ps -a" in cause(stopped(CONNECTION_REFUSED, only_hosts(), STANDARD)).remedy
    for error in (DENIED, UNREACHABLE):
        result = stopped(error, only_hosts(), STANDARD)
        assert "webhook pods.example.com" in cause(result).remedy
        output = text(of(result))
        assert "pods.example.com" in output
        assert "crictl" not in output


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ('pods "x" is forbidden: exceeded quota: no-pods, requested: pods=1, used: pods=0, '
         "limited: pods=0", "quota no-pods: "),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": '
         "allowPrivilegeEscalation != false", "Standard restricted:latest: "),
        ("pods \"x\" is forbidden: ValidatingAdmissionPolicy 'signed.example.com' with binding "
         "'all' denied request: not signed", "ValidatingAdmissionPolicy signed.example.com: "),
        ('pods "x" is forbidden: [maximum memory usage per Container is 1Mi, but no limit is '
         "specified]", "maximum memory usage per Container is 1Mi"),
        ('pods "x" is forbidden: no PriorityClass with name gone was found', "PriorityClass gone "),
        ('pods "x" is forbidden: error looking up service account a/default: serviceaccount '
         '"default" not found', "ServiceAccount default "),
        ('pods "x" is forbidden: unable to create new content in namespace gpuboot-verify-1 because'
         " it is being terminated", "namespace gpuboot-verify-1 "),
        ('pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
         "RuntimeClass nvidia "),
    ],
)  # fmt: skip
def test_what_refuses_pods_is_named(message: str, name: str) -> None:
    error = ClusterError(f"POST /api/v1/namespaces/gpuboot-verify-1/pods: 403 {message}", 403)
    assert name in cause(stopped(error, only_hosts(), STANDARD)).remedy
    assert pod_remedies.refusal_remedy("NewConnectionError: Connection refused") == ""


def test_a_gpu_without_uuid_is_not_covered() -> None:
    """One that the bus shows and the driver does not: no finding may name it."""
    observed = evidence()
    first = observed.hosts[0]
    without_uuid = replace(first, gpus=(replace(first.gpus[0], uuid=""), *first.gpus[1:]))
    only = replace(observed, hosts=(without_uuid,))
    built_report = of(VerificationResult(only, (), proof_chain.required_links(only, STANDARD)))
    assert [row.status for row in built_report.gpus] == ["not_covered", "not_covered"]


def test_where_prometheus_is_away_no_gpu_is_proven() -> None:
    observed = evidence()
    no_metrics = replace(
        observed.metrics, series=None, targets=None, rules=None, alertmanagers=None, alerts=None,
        errors={"prometheus": "503 no endpoints available"},
    )  # fmt: skip
    built_report = report(replace(observed, metrics=no_metrics, idle_series=None))
    assert (built_report.totals["proven"], built_report.totals["not_covered"]) == (0, 6)
    assert built_report.verdict == "not_covered"
    assert "503 no endpoints available" in text(built_report)


def test_a_node_that_cannot_be_read_has_no_proven_gpu() -> None:
    observed = evidence()
    unreachable_host = replace(
        observed.hosts[0], error="cannot be reached", outputs=None,
        gpus=tuple(replace(gpu, uuid="", index=None) for gpu in observed.hosts[0].gpus),
    )  # fmt: skip
    built_report = report(replace(observed, hosts=(unreachable_host, observed.hosts[1])))
    states = {row.status for row in built_report.gpus if row.node == "gpu1"}
    assert "pass" not in states
    assert built_report.totals["proven"] == 4
    assert built_report.verdict != "proven"


@pytest.mark.parametrize("missing", [{"error": "timed out", "gpus": (), "pci_addresses": ()}, {}])
def test_a_promised_gpu_that_nobody_saw_is_counted(missing: dict[str, Any]) -> None:
    """Of a host that cannot be read there was no row: `NOT COVERED  4 of 4 GPUs proven`."""
    observed = evidence()
    first = replace(observed.hosts[0], **missing)
    if not missing:  # one of its GPUs is off the bus
        first = replace(first, gpus=first.gpus[:1], pci_addresses=first.pci_addresses[:1])
    built_report = report(replace(observed, hosts=(first, observed.hosts[1])))
    counted = "0 failed, 2 not covered" if missing else "2 failed, 0 not covered"
    assert f"4 of 6 GPUs proven, {counted}" in text(built_report)
    assert text(built_report).count("? not seen") == len(missing) // 3 + 1
    assert len(built_report.to_json()["gpus"]) == 6
    assert html(built_report).count("UUID unknown") == len(missing) // 3 + 1
    assert len(report(observed).gpus) == 6
