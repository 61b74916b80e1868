"""`gpuboot remediate --act` on a cluster whose GPUs break: what it repairs, and what it leaves.

Each test leaves the cluster as it found it. What passes between two looks is told by Prometheus.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Lab, fresh_lab, until
from tests.e2e.repairs import (
    ALERT_S,
    BOOT,
    BREAKER,
    LIMITS,
    PAST,
    REPAIR_S,
    SETTINGS,
    TAINT,
    WAY,
    WEB,
    act,
    acting,
    events,
    firing,
    in_service,
    inject,
    item,
    killed,
    out,
    path,
    repair,
    resolved,
    untouched,
)  # fmt: skip

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-remediate", "--gpus", "2,1,1")


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """Three GPU nodes whose alerts hold for seconds, and repairs that wait for seconds."""
    with fresh_lab(*LAB, settings=SETTINGS) as running:
        yield running


def test_heat_is_no_reason(site: Lab) -> None:
    inject(site, "gpu2", "health_thermal", 20)
    inject(site, "gpu2", "temperature", 85)
    firing(site, "GPUThermalMarginLow", "gpu2")
    verdict = 'DCGM_EXP_GPU_HEALTH_STATUS{health_watch="THERMAL", node="gpu2"} == 20'
    until(lambda: site.prometheus(verdict), "a FAIL of heat", ALERT_S)
    for _ in range(2):
        result, transitions = act(site)
        assert result.code == 0, result.details
        assert transitions == []
        assert "heat is the room's or the machine's" in result.text
    untouched(site, "gpu1", "gpu2", "gpu3")
    assert site.lab("fault", "--name", site.name, "gpu2", "clear").code == 0


def test_an_exporter_that_is_down_is_no_reason(site: Lab) -> None:
    site.ssh(
        "gpu2",
        "nft 'add table ip fault; add chain ip fault open { type filter hook forward priority "
        "-150; }; add rule ip fault open tcp dport 9400 reject with tcp reset'",
    )
    firing(site, "GPUExporterDown", "gpu2")
    result, transitions = act(site)
    assert result.code == 0, result.details
    assert transitions == []
    untouched(site, "gpu1", "gpu2", "gpu3")
    site.ssh("gpu2", "nft delete table ip fault")


def test_xid_79_reboots_its_node(site: Lab) -> None:
    before = site.ssh("gpu2", BOOT)
    inject(site, "gpu2", "xid", 79)
    firing(site, "GPUXidFatal", "gpu2")
    transitions = acting(site, "gpu2", "released")
    assert path(transitions, "gpu2") == ["observed", "confirmed", *WAY]
    assert {transition["action"] for transition in transitions} == {"reboot"}
    assert site.ssh("gpu2", BOOT) != before
    assert out(site, "gpu2") == (False, False)
    expected_events = [f"Repair{state.capitalize()}" for state in path(transitions, "gpu2")]
    assert set(expected_events) <= set(events(site, "gpu2"))
    under = 'count_over_time(ALERTS{alertname="GPUNodeUnderRepair", node="gpu2"}[10m])'
    assert site.prometheus(under), "the alert has seen the taint"
    in_service(site, "gpu2")


def test_a_cordon_of_a_person_stays(site: Lab) -> None:
    site.kubectl("cordon", "gpu1")
    inject(site, "gpu1", "recovery_action", 1, gpu=1)
    firing(site, "GPURecoveryAction", "gpu1")
    for _ in range(2):
        result, transitions = act(site)
        assert result.code == 1, result.details
        assert transitions == []
        assert "somebody else has cordoned it" in result.text
    assert out(site, "gpu1") == (False, True)
    site.kubectl("uncordon", "gpu1")


def test_a_budget_that_lets_no_pod_go_is_respected(site: Lab) -> None:
    """The fault is still there."""
    boot = site.ssh("gpu1", BOOT)
    site.kubectl("apply", "-f", "-", stdin=WEB)
    site.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = ("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.uid}")
    running = site.kubectl(*pods)
    transitions = acting(site, "gpu1", "draining")
    result, later = act(site)
    assert [transition["to"] for transition in transitions + later][-1] == "draining"
    assert "(Deployment web) is kept by PodDisruptionBudget default/web" in result.text
    assert site.kubectl(*pods) == running
    assert out(site, "gpu1") == (True, True)
    site.kubectl("delete", "pdb", "web")
    time.sleep(LIMITS["retry_s"])
    transitions = acting(site, "gpu1", "released")
    assert path(transitions, "gpu1") == list(WAY[2:])
    assert site.kubectl(*pods) != running
    assert site.ssh("gpu1", BOOT) == boot, "a reset was enough"
    site.kubectl("delete", "deployment", "web")
    in_service(site, "gpu1")


def test_a_controller_that_is_killed_at_every_step_is_continued(site: Lab) -> None:
    boot = site.ssh("gpu3", BOOT)
    inject(site, "gpu3", "recovery_action", 1)
    firing(site, "GPURecoveryAction", "gpu3")
    killed_steps: set[tuple[str, str]] = set()
    kills = 0

    def released() -> bool:
        nonlocal kills
        kills += killed(site, killed_steps)
        return repair(site, "gpu3").get("state") == "released"

    until(released, "gpu3 released", 1500)
    act(site)  # tells of the last step, where it was killed with that
    assert kills >= 8
    states = ["observed", "confirmed", *WAY]
    assert set(states) <= {state for state, _ in killed_steps}
    assert out(site, "gpu3") == (False, False)
    reasons = events(site, "gpu3")
    for state in states:
        assert reasons.count(f"Repair{state.capitalize()}") == 1, "told once, whoever was killed"
    assert site.ssh("gpu3", BOOT) == boot
    assert site.ssh("gpu3", "systemctl is-active kubelet").strip() == "active"
    in_service(site, "gpu3")


def test_a_gpu_that_has_to_be_replaced_is_handed_over(site: Lab) -> None:
    node = "gpu2"
    boot = site.ssh(node, BOOT)
    inject(site, node, "row_remap_failure", 1)
    firing(site, "GPURowRemapFailure", node)
    until(lambda: act(site) and repair(site, node).get("bundle"), "handed over", REPAIR_S)
    assert repair(site, node)["state"] == "repairing"
    assert out(site, node) == (True, True)
    assert site.ssh(node, BOOT) == boot
    bundle = Path(repair(site, node)["bundle"].partition(":")[2])
    with tarfile.open(bundle) as archive:
        names = {Path(name).name for name in archive.getnames()}
        inside = next(
            member for member in archive.getmembers() if member.name.endswith("smi-q.txt")
        )
        report_file = archive.extractfile(inside)
        assert report_file
        assert repair(site, node)["gpus"][0] in report_file.read().decode()
    assert {"repair.json", "kernel.txt", "diagnosis.txt", "recording.json"} <= names
    result, transitions = act(site)
    assert (result.code, transitions) == (1, []), "nothing more is done to it"
    firing(site, "GPURepairStuck", node)
    # a person replaces the GPU, and takes the node back
    assert site.lab("fault", "--name", site.name, node, "repair").code == 0
    resolved(site, "GPURowRemapFailure", node)
    site.kubectl("taint", "node", node, f"{TAINT}-")
    site.kubectl("uncordon", node)
    until(lambda: act(site)[0].code == 0, "nothing to look at", REPAIR_S)
    assert out(site, node) == (False, False)
    past = json.loads(item(site, node)["metadata"]["annotations"][PAST])
    assert past[-1]["end"] == "cancelled"


def test_many_at_once_open_the_breaker_and_few_go_one_after_the_other(site: Lab) -> None:
    for machine in ("gpu2", "gpu3"):
        inject(site, machine, "xid", 79)
    for machine in ("gpu2", "gpu3"):
        firing(site, "GPUXidFatal", machine)
    result, transitions = act(site, breaker_share=2)
    for _ in range(3):
        time.sleep(LIMITS["confirm_s"])
        result, later = act(site, breaker_share=2)
        transitions += later
    assert result.code == 1
    assert "the breaker is open: 2 of 3 GPU nodes" in result.text
    assert not {transition["to"] for transition in transitions} & {"quarantined"}
    assert "2 of 3 GPU nodes" in site.kubectl("get", *BREAKER, "-o", "jsonpath={.data.why}")
    for machine in ("gpu2", "gpu3"):
        assert out(site, machine) == (False, False)
    site.kubectl("delete", *BREAKER)
    transitions = acting(site, "gpu3", "released")
    way = [(transition["node"], transition["to"]) for transition in transitions]
    assert way.index(("gpu2", "released")) < way.index(("gpu3", "quarantined")), "one at a time"
    in_service(site, "gpu2", "gpu3")


def test_the_cluster_is_proven_afterwards(site: Lab) -> None:
    result, report = site.verify()
    assert result.code == 0, result.details
    assert report["verdict"] == "proven"
