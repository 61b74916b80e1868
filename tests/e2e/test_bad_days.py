"""What breaks before or during a verification is named: node, link and GPU, in bounded time."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Collection
from typing import Any

import pytest

from bench.network import Condition, controller
from lab import machines, state
from tests.e2e.bad_days import DAYS, GPU_FAULTS, Day
from tests.e2e.conftest import ROOT, Lab, Run, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-bad",)

WITHIN_S = 420.0  # `verify.timeout_s` for the pods, and as much as the rest may take
VERIFY = ("gpuboot", "verify", "inventories/lab.py")
FAR = Condition("200ms-loss", rtt_ms=200, loss_percent=5)


def verified(lab: Lab, *prefix: str) -> tuple[Run, list[dict[str, Any]]]:
    """One verification that must end in time, without a traceback, and with a report of its own."""
    latest = lab.reports / "latest"
    before = latest.resolve()
    start = time.monotonic()
    result = lab.command([*prefix, *VERIFY])
    elapsed = time.monotonic() - start
    assert latest.resolve() != before, result.details
    assert "Traceback" not in result.text, result.text
    assert elapsed < WITHIN_S
    report = json.loads((latest / "verify.json").read_text())
    findings: list[dict[str, Any]] = report["findings"]
    print(f"{elapsed:.0f} s, exit code {result.code}, {report['verdict']}")
    for item in failed(findings):
        print(f"  {item['node']} {item['gpu_uuid'] or '-'} {item['link']}: {item['detail']}")
    return result, findings


def failed(findings: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    failures = [item for item in findings if item["status"] == "fail"]
    assert all(item["remedy"] for item in failures)
    return failures


def open_(findings: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of which nobody can tell. Where one is, nothing fails."""
    assert not failed(findings)
    return [item for item in findings if item["status"] == "unknown"]


def uuid(lab: Lab, machine: str, gpu: int) -> str:
    """Of a simulated GPU; see lab/gpusim/hardware."""
    output = lab.ssh(machine, "grep -m1 uuid_seed /var/lib/gpu-sim/hardware.conf")
    seed = int(output.split("=")[1].strip(), 0)
    return f"GPU-{seed:08x}-5157-4c6c-8abc-{gpu:012d}"


def settled(lab: Lab) -> None:
    until(lambda: lab.command(VERIFY).code == 0, "proven again", 300)


def test_faults_of_gpus_are_told_of_each_gpu(site: Lab) -> None:
    uuids = {fault: uuid(site, fault.machine, fault.gpu) for fault in GPU_FAULTS}
    for fault in GPU_FAULTS:
        words = ("set", str(fault.gpu), *fault.key.split())
        assert site.lab("fault", "--name", site.name, fault.machine, *words).code == 0
    time.sleep(15)  # a scrape of the exporter
    result, findings = verified(site)
    assert result.code == 1
    for fault in GPU_FAULTS:
        links = {item["link"] for item in failed(findings) if item["gpu_uuid"] == uuids[fault]}
        assert links & fault.links if fault.links else not links, (fault, links)
        assert not fault.links or uuids[fault] in result.text
    for machine in ("gpu1", "gpu2"):
        assert site.lab("fault", "--name", site.name, machine, "repair").code == 0
        for daemon_set in ("nvidia-dcgm-exporter", "nvidia-device-plugin-daemonset"):
            site.renew(daemon_set, machine)
    settled(site)


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_a_bad_day_is_named(site: Lab, day: Day) -> None:
    try:
        day.inject(site)
        result, findings = verified(site)
    finally:
        day.undo(site)
        settled(site)
    assert result.code == day.code, result.details
    open_findings = failed(findings) if day.code == 1 else open_(findings)
    assert {item["node"] for item in open_findings} <= {day.node, *day.other_nodes}
    matches = [
        item for item in open_findings if (item["node"], item["link"]) == (day.node, day.link)
    ]
    assert any(re.search(day.message, item["detail"] + item["remedy"]) for item in matches), (
        open_findings
    )


def test_a_slow_way_to_the_api_server_changes_no_verdict(site: Lab) -> None:
    with controller(state.load(site.name), FAR) as remote:
        result, findings = verified(site, *remote.prefix())
    assert result.code == 0, result.details
    assert not failed(findings)


def test_a_node_that_is_powered_off_meanwhile_is_named(site: Lab) -> None:
    running = subprocess.Popen(
        VERIFY,
        cwd=ROOT,
        env=site.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    start = time.monotonic()
    assert running.stdout is not None
    for line in running.stdout:
        if "reading 2 GPU nodes" in line:
            break
    lab_state = state.load(site.name)
    machines.power_off(lab_state, lab_state.get("gpu2"))  # a command of its own would come too late
    text, _ = running.communicate(timeout=WITHIN_S)
    print(f"{time.monotonic() - start:.0f} s, exit code {running.returncode}")
    assert running.returncode == 1, text
    assert "Traceback" not in text
    report = json.loads((site.reports / "latest/verify.json").read_text())
    assert {item["node"] for item in failed(report["findings"])} <= {"gpu2", ""}
    assert any(item["node"] == "gpu2" for item in failed(report["findings"]))
    assert site.lab("power", "--name", site.name, "gpu2", "on").code == 0
    settled(site)
