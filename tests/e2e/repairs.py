"""Repairs in a lab: one run of their timer, what it told, and what stands on a node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from tests.e2e.alert_faults import HOLD_FOR
from tests.e2e.conftest import ROOT, Lab, Run, until
from tests.e2e.workloads import web

ACT = ("gpuboot", "remediate", "inventories/lab.py", "--act", "-y")
SOON = {"hold_for": "10s"}
LIMITS = {
    "confirm_s": 15,
    "retry_s": 5,
    "watch_s": 20,
    "cooldown_h": 0,
    "max_repairs": 99,
    "breaker_share": 3,
    "breaker_window_s": 30,
}
# of whose restarts no test here is: on a node that is repaired it would see nothing meanwhile
PROMETHEUS = {
    "nodeSelector": {"kubernetes.io/hostname": "cp1"},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
}
SETTINGS: Mapping[str, Any] = {
    "monitoring": {"values": {"prometheus": {"prometheusSpec": PROMETHEUS}}},
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
WEB = web("gpu1")
BOOT = "cat /proc/sys/kernel/random/boot_id"


def act(site: Lab, **limits: Any) -> tuple[Run, list[dict[str, Any]]]:
    """One run of the timer, and the steps that it told. + limits: laid over `LIMITS`"""
    result = site.command(ACT, settings={"remediate": {**LIMITS, **limits}})
    assert "Traceback" not in result.text, result.text
    lines = [json.loads(line) for line in result.out.splitlines()]
    for line in lines:
        print(f"{line['time']} {line['node']}: {line['from']} -> {line['to']}: {line['why']}")
    print(result.err[result.err.find("Disconnecting") :])
    return result, lines


def acting(site: Lab, node: str, state: str, **limits: Any) -> list[dict[str, Any]]:
    """Runs, one after the other, until a node came to a state; all steps that they told."""
    transitions: list[dict[str, Any]] = []

    def reached() -> bool:
        transitions.extend(act(site, **limits)[1])
        return state in path(transitions, node)

    until(reached, f"{node} {state}", REPAIR_S)
    return transitions


def path(transitions: list[dict[str, Any]], node: str) -> list[str]:
    """The states that a node came to, each once."""
    return list(
        dict.fromkeys(
            transition["to"]
            for transition in transitions
            if transition["node"] == node and transition["to"]
        )
    )


def inject(site: Lab, machine: str, key: str, value: int = 1, gpu: int = 0) -> None:
    words = ("set", str(gpu), key, str(value))
    assert site.lab("fault", "--name", site.name, machine, *words).code == 0


def firing(site: Lab, alert: str, node: str) -> None:
    """Wait until an alert of a node fires."""
    until(lambda: site.prometheus(_firing_query(alert, node)), f"{alert} of {node}", ALERT_S)


def resolved(site: Lab, alert: str, node: str) -> None:
    """Wait until an alert of a node fires no more."""
    query = _firing_query(alert, node)
    until(lambda: not site.prometheus(query), f"{alert} of {node} ends", ALERT_S)


def _firing_query(alert: str, node: str) -> str:
    return f'ALERTS{{alertname="{alert}", node="{node}", alertstate="firing"}}'


def item(site: Lab, node: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(site.kubectl("get", "node", node, "-o", "json"))
    return document


def repair(site: Lab, node: str) -> dict[str, Any]:
    """What its annotation says; {} where there is none."""
    annotation: dict[str, Any] = json.loads(
        item(site, node)["metadata"].get("annotations", {}).get(STATE, "{}")
    )
    return annotation


def out(site: Lab, node: str) -> tuple[bool, bool]:
    """Whether it has the taint, and whether it is cordoned."""
    spec = item(site, node)["spec"]
    tainted = any(taint["key"] == TAINT for taint in spec.get("taints", ()))
    return tainted, bool(spec.get("unschedulable"))


def in_service(site: Lab, *nodes: str) -> None:
    """Nothing is left of a repair, once the alerts of it have ended."""

    def is_clear() -> bool:
        return act(site)[0].code == 0

    until(is_clear, "nothing to look at", REPAIR_S)
    for node in nodes:
        assert out(site, node) == (False, False)
        assert repair(site, node) == {}


def untouched(site: Lab, *nodes: str) -> None:
    for node in nodes:
        assert out(site, node) == (False, False)
        assert "gpuboot.io/repair" not in item(site, node)["metadata"].get("annotations", {})


def events(site: Lab, node: str) -> list[str]:
    """Reasons of the Events that repairs made of a node."""
    all_events = json.loads(
        site.kubectl("get", "events", "-n", "default", "--field-selector",
                     f"involvedObject.kind=Node,involvedObject.name={node}", "-o", "json")
    )["items"]  # fmt: skip
    own_events = [
        event for event in all_events if event["source"].get("component") == "gpuboot-remediate"
    ]
    return [
        event["reason"] for event in sorted(own_events, key=lambda event: event["firstTimestamp"])
    ]


def killed(site: Lab, killed_steps: set[tuple[str, str]]) -> bool:
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
            if step in killed_steps:
                continue  # of the one before, which could not tell whether it was told
            killed_steps.add(step)
            print(f"killed with {line['to']}: {line['why']}")
            if line["to"] in ("draining", "repairing", "validating"):
                time.sleep(2)  # in the midst of work
            os.killpg(running.pid, signal.SIGKILL)
            return True
    return False
