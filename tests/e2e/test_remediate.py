"""`gpuboot remediate --act` on a cluster whose GPUs break: what it repairs, and what it leaves.

Each test leaves the cluster as it found it. What passes between two looks is told by Prometheus.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.alert_faults import HOLD_FOR
from tests.e2e.conftest import ROOT, Lab, Run, fresh, until

pytestmark = [pytest.mark.lab, pytest.mark.long]
LAB = ("test-remediate", "--gpus", "2,1,1")

ACT = ("gpuboot", "remediate", "inventories/lab.py", "--act", "-y")
SOON = {"hold_for": "10s"}
LIMITS = {
    "confirm_s": 15,
    "retry_s": 5,
    "watch_s": 0,
    "cooldown_h": 0,
    "max_repairs": 99,
    "breaker_share": 3,
    "breaker_window_s": 30,
}
SETTINGS: Mapping[str, Any] = {
    "alerts": {
        "rules": {
            **HOLD_FOR,
            "GPUExporterDown": SOON,
            "GPURepairStuck": {"hold_for": "30s"},
        }
    },
    "remediate": LIMITS,
    "upgrade": {"drain_timeout_s": 20},
}
STATE, PAST, TAINT = "gpuboot.io/repair", "gpuboot.io/repairs", "gpu-quarantine"
BREAKER = ("-n", "kube-system", "configmap", "gpuboot-remediate-breaker")
WAY = ("quarantined", "draining", "drained", "repairing", "validating", "released")
ALERT_S, REPAIR_S = 240, 600
BOOT = "cat /proc/sys/kernel/random/boot_id"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/hostname: gpu1}
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
        command: [sleep, "36000"]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Lab]:
    """Three GPU nodes whose alerts hold for seconds, and repairs that wait for seconds."""
    with fresh(*LAB, settings=SETTINGS) as running:
        yield running


def act(site: Lab, **limits: Any) -> tuple[Run, list[dict[str, Any]]]:
    """One run of the timer, and the steps that it told. + limits: laid over `LIMITS`"""
    done = site.command(ACT, settings={"remediate": {**LIMITS, **limits}})
    assert "Traceback" not in done.text, done.text
    lines = [json.loads(line) for line in done.out.splitlines()]
    for line in lines:
        print(f"{line['time']} {line['node']}: {line['from']} -> {line['to']}: {line['why']}")
    print(done.err[done.err.rfind("gpuboot: ") :])
    return done, lines


def acting(site: Lab, node: str, state: str | None, **limits: Any) -> list[dict[str, Any]]:
    """Runs, one after the other, until a node is in a state; all steps that they told."""
    told: list[dict[str, Any]] = []

    def there() -> bool:
        told.extend(act(site, **limits)[1])
        return repair(site, node).get("state") == state

    until(there, f"{node} {state}", REPAIR_S)
    return told


def path(told: list[dict[str, Any]], node: str) -> list[str]:
    """The states that a node came to, each once."""
    return list(dict.fromkeys(one["to"] for one in told if one["node"] == node))


def inject(site: Lab, machine: str, key: str, value: int = 1, gpu: int = 0) -> None:
    words = ("set", str(gpu), key, str(value))
    assert site.lab("fault", "--name", site.name, machine, *words).code == 0


def firing(site: Lab, alert: str, node: str) -> None:
    """Wait until an alert of a node fires."""
    query = f'ALERTS{{alertname="{alert}", node="{node}", alertstate="firing"}}'
    until(lambda: site.prometheus(query), f"{alert} of {node}", ALERT_S)


def item(site: Lab, node: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.kubectl("get", "node", node, "-o", "json"))
    return found


def repair(site: Lab, node: str) -> dict[str, Any]:
    """What its annotation says; {} where there is none."""
    found: dict[str, Any] = json.loads(
        item(site, node)["metadata"].get("annotations", {}).get(STATE, "{}")
    )
    return found


def out(site: Lab, node: str) -> tuple[bool, bool]:
    """Whether it has the taint, and whether it is cordoned."""
    spec = item(site, node)["spec"]
    tainted = any(one["key"] == TAINT for one in spec.get("taints", ()))
    return tainted, bool(spec.get("unschedulable"))


def in_service(site: Lab, *nodes: str) -> None:
    """Nothing is left of a repair, once the alerts of it have ended."""

    def gone() -> bool:
        return act(site)[0].code == 0

    until(gone, "nothing to look at", REPAIR_S)
    for node in nodes:
        assert out(site, node) == (False, False)
        assert repair(site, node) == {}


def untouched(site: Lab, *nodes: str) -> None:
    for node in nodes:
        assert out(site, node) == (False, False)
        assert "gpuboot.io/repair" not in item(site, node)["metadata"].get("annotations", {})


def events(site: Lab, node: str) -> list[str]:
    """Reasons of the Events that repairs made of a node."""
    found = json.loads(
        site.kubectl("get", "events", "-n", "default", "--field-selector",
                     f"involvedObject.kind=Node,involvedObject.name={node}", "-o", "json")
    )["items"]  # fmt: skip
    ours = [one for one in found if one["source"].get("component") == "gpuboot-remediate"]
    return [one["reason"] for one in sorted(ours, key=lambda one: one["firstTimestamp"])]


def test_heat_is_no_reason(site: Lab) -> None:
    inject(site, "gpu2", "health_thermal", 20)
    firing(site, "GPUHealthFail", "gpu2")
    for _ in range(2):
        done, told = act(site)
        assert done.code == 0, done.told
        assert told == []
        assert "heat is the room's or the machine's" in done.text
    untouched(site, "gpu1", "gpu2", "gpu3")
    assert site.lab("fault", "--name", site.name, "gpu2", "clear").code == 0


def test_an_exporter_that_is_down_is_no_reason(site: Lab) -> None:
    site.ssh(
        "gpu2",
        "nft 'add table ip fault; add chain ip fault open { type filter hook forward priority "
        "-150; }; add rule ip fault open tcp dport 9400 reject with tcp reset'",
    )
    firing(site, "GPUExporterDown", "gpu2")
    done, told = act(site)
    assert done.code == 0, done.told
    assert told == []
    untouched(site, "gpu1", "gpu2", "gpu3")
    site.ssh("gpu2", "nft delete table ip fault")


def test_xid_79_reboots_its_node(site: Lab) -> None:
    before = site.ssh("gpu2", BOOT)
    inject(site, "gpu2", "xid", 79)
    firing(site, "GPUXidFatal", "gpu2")
    told = acting(site, "gpu2", "released")
    assert path(told, "gpu2") == ["observed", "confirmed", *WAY]
    assert {one["action"] for one in told} == {"reboot"}
    assert site.ssh("gpu2", BOOT) != before
    assert out(site, "gpu2") == (False, False)
    assert events(site, "gpu2") == [f"Repair{state.capitalize()}" for state in path(told, "gpu2")]
    under = 'count_over_time(ALERTS{alertname="GPUNodeUnderRepair", node="gpu2"}[10m])'
    assert site.prometheus(under), "the alert has seen the taint"
    in_service(site, "gpu2")


def test_a_cordon_of_a_person_stays(site: Lab) -> None:
    site.kubectl("cordon", "gpu1")
    inject(site, "gpu1", "recovery_action", 1, gpu=1)
    firing(site, "GPURecoveryAction", "gpu1")
    for _ in range(2):
        done, told = act(site)
        assert done.code == 1, done.told
        assert told == []
        assert "somebody else has cordoned it" in done.text
    assert out(site, "gpu1") == (False, True)
    site.kubectl("uncordon", "gpu1")


def test_a_budget_that_lets_no_pod_go_is_respected(site: Lab) -> None:
    """The fault is still there."""
    boot = site.ssh("gpu1", BOOT)
    site.kubectl("apply", "-f", "-", given=WEB)
    site.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = ("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.uid}")
    running = site.kubectl(*pods)
    told = acting(site, "gpu1", "draining")
    done, more = act(site)
    assert [one["to"] for one in told + more][-1] == "draining"
    assert "(Deployment web) is kept by PodDisruptionBudget default/web" in done.text
    assert site.kubectl(*pods) == running
    assert out(site, "gpu1") == (True, True)
    site.kubectl("delete", "pdb", "web")
    time.sleep(LIMITS["retry_s"])
    told = acting(site, "gpu1", "released")
    assert path(told, "gpu1") == list(WAY[2:])
    assert site.kubectl(*pods) != running
    assert site.ssh("gpu1", BOOT) == boot, "a reset was enough"
    site.kubectl("delete", "deployment", "web")
    in_service(site, "gpu1")


def killed(site: Lab, seen: set[tuple[str, str]]) -> bool:
    """A run that is killed with its first new step; False: it ended by itself before."""
    with subprocess.Popen(
        ACT,
        cwd=ROOT,
        env=site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout
        for text in running.stdout:
            line = json.loads(text)
            step = (line["to"], line["why"])
            if step in seen:
                continue  # of the one before, which could not tell whether it was told
            seen.add(step)
            print(f"killed with {line['to']}: {line['why']}")
            if line["to"] in ("draining", "repairing", "validating"):
                time.sleep(2)  # in the midst of work
            os.killpg(running.pid, signal.SIGKILL)
            return True
    return False


def test_a_controller_that_is_killed_at_every_step_is_continued(site: Lab) -> None:
    boot = site.ssh("gpu3", BOOT)
    inject(site, "gpu3", "recovery_action", 1)
    firing(site, "GPURecoveryAction", "gpu3")
    seen: set[tuple[str, str]] = set()
    kills = 0

    def released() -> bool:
        nonlocal kills
        kills += killed(site, seen)
        return repair(site, "gpu3").get("state") == "released"

    until(released, "gpu3 released", 1500)
    act(site)  # tells of the last step, where it was killed with that
    assert kills >= 8
    states = ["observed", "confirmed", *WAY]
    assert set(states) <= {state for state, _ in seen}
    assert out(site, "gpu3") == (False, False)
    made = events(site, "gpu3")
    assert [one for one in dict.fromkeys(made) if one != "RepairEnded"] == [
        f"Repair{state.capitalize()}" for state in states
    ]
    assert site.ssh("gpu3", BOOT) == boot
    assert site.ssh("gpu3", "systemctl is-active kubelet").strip() == "active"
    in_service(site, "gpu3")


def test_a_gpu_that_has_to_be_replaced_is_handed_over(site: Lab) -> None:
    boot = site.ssh("gpu3", BOOT)
    inject(site, "gpu3", "row_remap_failure", 1)
    firing(site, "GPURowRemapFailure", "gpu3")
    until(lambda: act(site) and repair(site, "gpu3").get("bundle"), "handed over", REPAIR_S)
    assert repair(site, "gpu3")["state"] == "repairing"
    assert out(site, "gpu3") == (True, True)
    assert site.ssh("gpu3", BOOT) == boot
    bundle = Path(repair(site, "gpu3")["bundle"].partition(":")[2])
    with tarfile.open(bundle) as archive:
        names = {Path(name).name for name in archive.getnames()}
        inside = next(one for one in archive.getmembers() if one.name.endswith("smi-q.txt"))
        found = archive.extractfile(inside)
        assert found
        assert "Remapping Failure Occurred" in found.read().decode()
    assert {"repair.json", "kernel.txt", "diagnosis.txt", "recording.json"} <= names
    done, told = act(site)
    assert (done.code, told) == (1, []), "nothing more is done to it"
    firing(site, "GPURepairStuck", "gpu3")
    # a person replaces the GPU, and takes the node back
    assert site.lab("fault", "--name", site.name, "gpu3", "repair").code == 0
    site.kubectl("taint", "node", "gpu3", f"{TAINT}-")
    site.kubectl("uncordon", "gpu3")
    until(lambda: act(site)[0].code == 0, "nothing to look at", REPAIR_S)
    assert out(site, "gpu3") == (False, False)
    past = json.loads(item(site, "gpu3")["metadata"]["annotations"][PAST])
    assert past[-1]["end"] == "cancelled"


def test_many_at_once_open_the_breaker_and_few_go_one_after_the_other(site: Lab) -> None:
    for machine in ("gpu2", "gpu3"):
        inject(site, machine, "xid", 79)
    for machine in ("gpu2", "gpu3"):
        firing(site, "GPUXidFatal", machine)
    done, told = act(site, breaker_share=2)
    for _ in range(3):
        time.sleep(LIMITS["confirm_s"])
        done, more = act(site, breaker_share=2)
        told += more
    assert done.code == 1
    assert "the breaker is open: 2 of 3 GPU nodes" in done.text
    assert not {one["to"] for one in told} & {"quarantined"}
    assert "2 of 3 GPU nodes" in site.kubectl("get", *BREAKER, "-o", "jsonpath={.data.why}")
    for machine in ("gpu2", "gpu3"):
        assert out(site, machine) == (False, False)
    site.kubectl("delete", *BREAKER)
    told = acting(site, "gpu3", "released")
    way = [(one["node"], one["to"]) for one in told]
    assert way.index(("gpu2", "released")) < way.index(("gpu3", "quarantined")), "one at a time"
    in_service(site, "gpu2", "gpu3")


def test_the_cluster_is_proven_afterwards(site: Lab) -> None:
    done, report = site.verify()
    assert done.code == 0, done.told
    assert report["verdict"] == "proven"
