"""DCGM's host engine in the lab: read by the exporter, asked by timers, upgraded, removed.

Engine and dcgmi are simulated (lab/gpusim/dcgm, lab/gpusim/deep/dcgmi): what they say of a GPU are
the faults that were set. All around them is real: packages, units, timers, metrics, alerts.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests.e2e.conftest import Lab, Run, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-dcgm", "--single")
NODE = "node1"
ON = {
    "dcgm": "host",
    "alerts": {"rules": {name: {"hold_for": "5s"} for name in ("DCGMHealthFail", "DCGMDiagFail")}},
}
CHECK = "/usr/local/sbin/gpuboot-dcgm-check"


@pytest.fixture(scope="module")
def dcgm(site: Lab) -> Lab:
    """The node of the site, with a host engine."""
    lab = Lab(site.name, ON)
    result = lab.deploy("--json")
    print(f"changed: {result.changes}")
    assert "PROVEN" in result.text, "the proof knows already what DCGM says"
    return lab


def fault(lab: Lab, *words: str) -> None:
    result = lab.lab("fault", "--name", lab.name, NODE, *words)
    assert result.code == 0, result.details


def health(verification: tuple[Run, dict[str, Any]]) -> list[dict[str, Any]]:
    return [finding for finding in verification[1]["findings"] if finding["link"] == "health"]


def exporter(lab: Lab) -> dict[str, Any]:
    """The exporter's pod."""
    label = "app=nvidia-dcgm-exporter"
    output = lab.kubectl("-n", "gpu-operator", "get", "pods", "-l", label, "-o", "json")
    [pod] = json.loads(output)["items"]
    return dict(pod)


def firing(lab: Lab, name: str) -> list[dict[str, Any]]:
    return lab.prometheus(f'ALERTS{{alertname="{name}", alertstate="firing"}}')


def test_the_engine_runs_on_the_node_alone_and_the_exporter_reads_it(dcgm: Lab) -> None:
    assert dcgm.ssh(NODE, "systemctl is-active nvidia-dcgm").strip() == "active"
    listening = dcgm.ssh(NODE, "ss -Hltnp 'sport = :5555'").split()
    assert listening[3] == "127.0.0.1:5555"
    pod = exporter(dcgm)
    assert pod["spec"]["hostNetwork"] is True
    connected = dcgm.ssh(NODE, "ss -Htnp 'dport = :5555'")
    assert "dcgm-exporter" in connected
    hold_count = dcgm.ssh(NODE, "apt-mark showhold | grep -c datacenter-gpu-manager-4").strip()
    assert hold_count == "4"


def test_a_second_run_has_nothing_to_do(dcgm: Lab) -> None:
    assert dcgm.deploy("--json").changes == []


def test_timers_have_asked_and_the_report_knows_it(dcgm: Lab) -> None:
    stamps = ("gpuboot_dcgm_health_timestamp_seconds", "gpuboot_dcgm_diag_timestamp_seconds")
    for stamp in stamps:
        until(partial(dcgm.prometheus, stamp), f"Prometheus knows {stamp}")
    verified = dcgm.verify()
    assert verified[0].code == 0, verified[0].details
    findings = health(verified)
    assert {finding["status"] for finding in findings} == {"pass"}
    assert all("host engine finds nothing" in finding["detail"] for finding in findings)


@pytest.mark.parametrize(
    ("key", "value", "check", "alert", "label"),
    [
        ("health_mem", "20", "health", "DCGMHealthFail", ("health_watch", "MEM")),
        ("row_remap_pending", "1", "diag", "DCGMDiagFail", ("test", "software")),
    ],
)
def test_a_fault_is_told_by_alert_and_report(
    dcgm: Lab, key: str, value: str, check: str, alert: str, label: tuple[str, str]
) -> None:
    fault(dcgm, "set", "1", key, value)
    try:
        output = dcgm.ssh(NODE, f"{CHECK} {check}")
        print(output)
        assert "SIMULATED" in output
        fired = until(lambda: firing(dcgm, alert), f"{alert} fires", 180)
        uuid = dcgm.ssh(NODE, "nvidia-smi --query-gpu=uuid --format=csv,noheader -i 1").strip()
        labels = fired[0]["metric"]
        assert (labels["UUID"], labels["gpu"], labels[label[0]]) == (uuid, "1", label[1])
        failed = [finding for finding in health(dcgm.verify()) if finding["status"] == "fail"]
        assert [finding["gpu_uuid"] for finding in failed] == [uuid]
        assert "SIMULATED" in failed[0]["detail"]
    finally:
        fault(dcgm, "repair")
        dcgm.ssh(NODE, f"{CHECK} {check}")
    until(lambda: not firing(dcgm, alert), f"{alert} ends", 180)


def test_an_engine_that_is_stopped_is_unknown_and_not_well(dcgm: Lab) -> None:
    """And ends the exporter; the next run brings both back."""
    dcgm.ssh(NODE, "systemctl stop nvidia-dcgm gpuboot-dcgm-health.timer")
    stale = "sed -i 's/^time\\t.*/time\\t1/' /var/lib/gpuboot/dcgm/health.tsv"
    output = dcgm.ssh(NODE, f"{CHECK} health 2>&1 || {stale}")
    print(output)
    assert "Unable to connect to host engine" in output
    until(lambda: "dcgm-exporter" not in dcgm.ssh(NODE, "ss -Htnp 'dport = :5555'"), "it ends")
    statuses = {finding["status"] for finding in health(dcgm.verify())}
    assert "pass" not in statuses
    result = dcgm.deploy("--json")
    assert "DCGM | Run DCGM's host engine 4.6.1" in result.changes
    until(lambda: dcgm.ssh(NODE, f"{CHECK} health") and True, "it answers")
    assert {finding["status"] for finding in health(dcgm.verify())} == {"pass"}


def test_an_earlier_engine_is_upgraded_after_the_exporter(dcgm: Lab, lock: dict[str, Any]) -> None:
    older = {**lock["versions"], "dcgm": {"version": "4.6.0"}}
    result = dcgm.deploy("--json", settings={"versions": older})
    assert "DCGM | Run DCGM's host engine 4.6.0" in result.changes, "a later one goes before"
    assert "4.6.0" in dcgm.ssh(NODE, "dpkg-query -W datacenter-gpu-manager-4-core")
    result = dcgm.deploy("--json")
    assert [name for name in result.changes if "host engine" in name] == [
        "DCGM upgrade | Upgrade DCGM's host engine 4.6.1"
    ]
    assert "4.6.1" in dcgm.ssh(NODE, "dpkg-query -W datacenter-gpu-manager-4-core")


def test_switched_off_nothing_of_it_runs_or_is_told(site: Lab, dcgm: Lab) -> None:
    result = site.deploy("--json")
    print(f"changed: {result.changes}")
    assert site.ssh(NODE, "systemctl is-active nvidia-dcgm || true").strip() == "inactive"
    list_leftovers = (
        "ls /var/lib/node_exporter/textfile_collector /var/lib/gpuboot/dcgm /etc/gpuboot"
    )
    assert "dcgm" not in site.ssh(NODE, f"{list_leftovers} 2>/dev/null | grep -v : || true")
    until(lambda: not site.prometheus("gpuboot_dcgm_health"), "the metrics end")
    assert exporter(site)["spec"].get("hostNetwork", False) is False
    assert site.deploy("--json").changes == []
