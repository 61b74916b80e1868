"""A GPU is proven when each link that its level demands was looked at and passed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.docker import checks as docker_checks
from gpuboot.kubernetes.api import ClusterError
from gpuboot.verify import refusals
from gpuboot.verify.checks import chain, operating_system
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import Finding
from gpuboot.verify.gate import outcomes
from gpuboot.verify.history.events import changes
from gpuboot.verify.report import Report, build, load, write
from gpuboot.verify.report.comparison import differences
from gpuboot.verify.report.html import html
from gpuboot.verify.report.junit import junit
from gpuboot.verify.report.model import GpuRow
from gpuboot.verify.runner import VerificationResult
from gpuboot.verify.stopped import stopped
from tests.unit.evidence import evidence, uuid
from tests.unit.reports import report, text

STANDARD = parse_settings({"exporter": {"interval_ms": 2000}})
DEEP = parse_settings({"exporter": {"interval_ms": 2000}, "verify": {"level": "deep"}})
QUICK = parse_settings({"exporter": {"interval_ms": 2000}, "verify": {"level": "quick"}})
GONE = ClusterError("GET /api/v1/nodes: NewConnectionError: [Errno 111] Connection refused")
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
        "lab", "2026-11-21T14:00:00Z", 3.1, result.evidence.hosts, result.findings, result.demanded,
        level=level,
    )  # fmt: skip


def only_hosts() -> Evidence:
    seen = evidence()
    return Evidence(hosts=seen.hosts, nodes={}, control_planes=seen.control_planes)


@pytest.mark.parametrize("settings", [STANDARD, QUICK, DEEP])
@pytest.mark.parametrize("error", [GONE, DENIED, UNREACHABLE])
def test_a_verification_that_was_stopped_proves_no_gpu(
    error: ClusterError, settings: Any, tmp_path: Path
) -> None:
    level = settings.verify.level
    result = stopped(error, only_hosts(), settings)
    made = of(result, level)
    assert made.totals == {
        "gpus": 6, "proven": 0, "answering": 0, "failed": 0, "not_covered": 6,
    }  # fmt: skip
    assert (made.verdict, made.exit) == ("failed", 1)
    written = tmp_path / "verify.json"
    write(made, tmp_path)
    data = json.loads(written.read_text())
    assert (data["totals"]["proven"], data["verdict"]) == (0, "failed")
    assert all(row["status"] == "not_covered" for row in data["gpus"])
    assert load(written).totals == made.totals
    assert not any(
        event.kind == "proven" for events in changes(made, {}).values() for event in events
    )
    assert outcomes(result.evidence, result.findings) == []
    shown = text(made)
    if level != "quick":
        assert "0 of 6 GPUs proven" in shown
        suites = ET.fromstring(junit(made))
        skipped = {case.get("classname") for case in suites.iter("testcase")
                   if case.find("skipped") is not None}  # fmt: skip
        assert "gpu1.workload" in skipped
        assert ">0</b><span>proven" in html(made)


def test_a_lower_link_that_passed_is_no_proof_of_those_above() -> None:
    lower = [
        item for host in evidence().hosts for item in operating_system.evaluate(host, "default")
    ]
    result = VerificationResult(evidence(), tuple(lower), chain.demanded(evidence(), STANDARD))
    made = of(result)
    assert {item.status for item in lower} == {"pass"}
    assert (made.verdict, made.totals["proven"], made.totals["not_covered"]) == (
        "not_covered", 0, 6,
    )  # fmt: skip
    assert "nobody looked at it" in text(made)


@pytest.mark.parametrize("link", chain.demanded(evidence(), STANDARD)["gpu1"])
def test_each_link_of_the_level_is_needed(link: str) -> None:
    """Without the findings of one link of one node, the GPUs of just that node are not covered."""
    seen = evidence()
    found = [
        item for item in chain.evaluate(seen, STANDARD) if (item.node, item.link) != ("gpu1", link)
    ]
    made = of(VerificationResult(seen, tuple(found), chain.demanded(seen, STANDARD)))
    assert (made.totals["proven"], made.totals["not_covered"]) == (4, 2)
    assert (made.verdict, made.exit) == ("not_covered", 2)


def test_what_settings_switch_off_is_not_demanded() -> None:
    off = parse_settings({"monitoring": {"enabled": False}})
    links = chain.demanded(evidence(), off)["gpu1"]
    assert {"prometheus", "attribution"} & {*links} == set()
    assert {"workload", "exporter"} <= {*links}
    assert "diag" in chain.demanded(evidence(), DEEP)["gpu1"]
    assert "workload" not in chain.demanded(evidence(), QUICK)["gpu1"]
    docker = docker_checks.demanded(evidence(), STANDARD)["gpu1"]
    assert {"allocatable", "attribution"} & {*docker} == set()
    assert {"workload", "prometheus"} <= {*docker}


def test_deep_tests_that_were_stopped_leave_what_was_proven_before_and_prove_nothing() -> None:
    seen = evidence()
    before = VerificationResult(seen, tuple(chain.evaluate(seen, DEEP)), chain.demanded(seen, DEEP))
    made = of(stopped(DENIED, only_hosts(), DEEP, before), "deep")
    row = made.gpus[0]
    assert (row.links["workload"], row.links["diag"], row.status) == (
        "pass", "not_covered", "not_covered",
    )  # fmt: skip
    assert made.totals["proven"] == 0


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


def test_an_old_report_whose_links_are_missing_is_not_read_as_proven(tmp_path: Path) -> None:
    """Reports did not tell what was demanded; one with all links stays what it was."""
    write(report(evidence()), tmp_path)
    path = tmp_path / "verify.json"
    data = json.loads(path.read_text())
    for row in data["gpus"]:
        del row["demanded"]
    path.write_text(json.dumps(data))
    assert load(path).totals["proven"] == 6
    for row in data["gpus"]:
        row["links"] = dict.fromkeys(("pci", "driver", "nvidia-smi", "runtime"), "pass")
    path.write_text(json.dumps(data))
    assert (load(path).totals["proven"], load(path).totals["not_covered"]) == (0, 6)


def test_a_comparison_names_gpus_that_are_not_covered_any_more() -> None:
    now = of(stopped(GONE, only_hosts(), STANDARD))
    lines = differences(report(evidence()), now)
    assert "verdict: proven -> failed" in lines
    assert any(uuid("gpu1", 0) in line and "not covered any more" in line for line in lines)


def cause(result: VerificationResult) -> Finding:
    (found,) = [item for item in result.findings if item.status == "fail"]
    return found


def test_the_remedy_is_that_of_what_stopped_it() -> None:
    assert "crictl ps -a" in cause(stopped(GONE, only_hosts(), STANDARD)).remedy
    for error in (DENIED, UNREACHABLE):
        result = stopped(error, only_hosts(), STANDARD)
        assert "webhook pods.example.com" in cause(result).remedy
        shown = text(of(result))
        assert "pods.example.com" in shown
        assert "crictl" not in shown


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ('pods "x" is forbidden: exceeded quota: no-pods, requested: pods=1, used: pods=0, '
         "limited: pods=0", "quota no-pods "),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": '
         "allowPrivilegeEscalation != false", "Standard restricted:latest "),
        ("pods \"x\" is forbidden: ValidatingAdmissionPolicy 'signed.example.com' with binding "
         "'all' denied request: not signed", "ValidatingAdmissionPolicy signed.example.com "),
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
    assert refusals.remedy("NewConnectionError: Connection refused") == ""


def test_a_gpu_without_uuid_is_not_covered() -> None:
    """One that the bus shows and the driver does not: no finding may name it."""
    seen = evidence()
    first = seen.hosts[0]
    lost = replace(first, gpus=(replace(first.gpus[0], uuid=""), *first.gpus[1:]))
    only = replace(seen, hosts=(lost,))
    made = of(VerificationResult(only, (), chain.demanded(only, STANDARD)))
    assert [row.status for row in made.gpus] == ["not_covered", "not_covered"]


def test_where_prometheus_is_away_no_gpu_is_proven() -> None:
    seen = evidence()
    away = replace(
        seen.metrics, series=None, targets=None, rules=None, alertmanagers=None, alerts=None,
        errors={"prometheus": "503 no endpoints available"},
    )  # fmt: skip
    made = report(replace(seen, metrics=away, idle_series=None))
    assert (made.totals["proven"], made.totals["not_covered"]) == (0, 6)
    assert made.verdict == "not_covered"
    assert "503 no endpoints available" in text(made)


def test_a_node_that_cannot_be_read_has_no_proven_gpu() -> None:
    seen = evidence()
    away = replace(
        seen.hosts[0], error="cannot be reached", printed=None,
        gpus=tuple(replace(gpu, uuid="", index=None) for gpu in seen.hosts[0].gpus),
    )  # fmt: skip
    made = report(replace(seen, hosts=(away, seen.hosts[1])))
    states = {row.status for row in made.gpus if row.node == "gpu1"}
    assert "pass" not in states
    assert made.totals["proven"] == 4
    assert made.verdict != "proven"
