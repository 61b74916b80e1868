"""Injected faults, and what people are told of them: on real Prometheus and Alertmanager."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.alert_receivers.endpoints import JOURNAL
from lab.settings import home
from tests.e2e.alert_faults import FAULTS, Fault
from tests.e2e.conftest import Lab

pytestmark = pytest.mark.lab

FIRES_WITHIN_S = 240
RESOLVES_WITHIN_S = 300
POLL_S = 3
# DCGM remembers a verdict until its engine restarts, and the device plugin a GPU that failed: the
# runbooks have their pods deleted.
EXPORTER, PLUGIN = "nvidia-dcgm-exporter", "nvidia-device-plugin-daemonset"
RESTARTS = {
    "GPUXidFatal": (EXPORTER, PLUGIN),
    "GPUUncorrectableECC": (EXPORTER,),
    "GPULost": (PLUGIN,),
}


# etcd's disk is not simulated: it is this computer's, and slow where other labs are being made
NOT_SIMULATED = "EtcdSlowDisk"
OWN_ALERTS = f'ALERTS{{gpu_action!="",alertname!="{NOT_SIMULATED}"}}'


@dataclass
class AlertOutcome:
    """What arrived about one fault. Seconds count from its injection, and from its undoing."""

    fault: Fault
    labels: dict[str, str] = field(default_factory=dict)
    fired_s: float | None = None
    resolved_s: float | None = None


@dataclass
class Journal:
    """The messages that arrived at the lab's receivers after this object was made."""

    path: Path
    skip: int = 0

    @classmethod
    def of(cls, lab: Lab) -> Journal:
        path = home(lab.name) / JOURNAL
        return cls(path, len(path.read_text().splitlines()) if path.exists() else 0)

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts in all messages, oldest first, each with the receiver that it came to."""
        lines = self.path.read_text().splitlines()[self.skip :] if self.path.exists() else []
        return [
            {**alert, "receiver": record["receiver"]}
            for record in map(json.loads, lines)
            if record["receiver"] != "watchdog"
            for alert in record["alerts"]
        ]

    def alerts_for(self, fault: Fault, uuid: str | None, status: str) -> list[dict[str, Any]]:
        """The messages that tell of the fault's own alert, at its receiver."""
        return [
            alert
            for alert in self.alerts()
            if alert["name"] == fault.alert
            and alert["status"] == status
            and alert["receiver"] == fault.receiver
            and alert["labels"].get("node") == fault.machine
            and alert["labels"].get("UUID") == uuid
        ]


@pytest.fixture(scope="module")
def quiet_lab(lab: Lab) -> Iterator[Lab]:
    """The lab while nobody is told of anything; repaired afterwards."""
    _until_quiet(lab)
    yield lab
    for machine in ("gpu1", "gpu2"):
        _gpu_sim(lab, machine, "repair")


def test_every_fault_is_told_as_it_should_be_and_nothing_else(quiet_lab: Lab) -> None:
    uuids = _uuids(quiet_lab)
    journal = Journal.of(quiet_lab)
    outcomes = _inject_and_clear(quiet_lab, journal, uuids)
    _write_table(quiet_lab, outcomes)
    for item in outcomes:
        assert item.labels["gpu_action"] == item.fault.action, item
        assert item.labels["alertname"] == item.fault.alert
    assert _unexpected(journal, uuids) == []
    result = quiet_lab.lab("alerts", "--name", quiet_lab.name)
    assert result.code == 0, result.text
    assert all(fault.alert in result.out for fault in FAULTS)


def test_rules_are_healthy_and_nothing_fires_afterwards(quiet_lab: Lab) -> None:
    _until_quiet(quiet_lab)
    result, report = quiet_lab.verify()
    assert result.code == 0, result.details
    rules = [item for item in report["findings"] if item["link"] == "rules"]
    assert rules
    assert {item["status"] for item in rules} == {"pass"}


def _inject_and_clear(
    lab: Lab, journal: Journal, uuids: dict[tuple[str, int], str]
) -> list[AlertOutcome]:
    outcomes = {fault: AlertOutcome(fault) for fault in FAULTS}
    started = {fault: _inject(lab, fault) for fault in FAULTS}

    def fired() -> bool:
        for item in outcomes.values():
            alerts = journal.alerts_for(item.fault, _uuid(item.fault, uuids), "firing")
            if item.fired_s is None and alerts:
                item.fired_s = time.monotonic() - started[item.fault]
                item.labels = alerts[0]["labels"] | {"alertname": alerts[0]["name"]}
        return all(item.fired_s is not None for item in outcomes.values())

    _wait(fired, FIRES_WITHIN_S, lambda: _missing(outcomes.values(), "fired_s", journal))
    cleared = {fault: _clear(lab, fault) for fault in FAULTS}

    def resolved() -> bool:
        for item in outcomes.values():
            alerts = journal.alerts_for(item.fault, _uuid(item.fault, uuids), "resolved")
            if item.resolved_s is None and alerts:
                item.resolved_s = time.monotonic() - cleared[item.fault]
        return all(item.resolved_s is not None for item in outcomes.values())

    _wait(resolved, RESOLVES_WITHIN_S, lambda: _missing(outcomes.values(), "resolved_s", journal))
    return list(outcomes.values())


def _inject(lab: Lab, fault: Fault) -> float:
    _gpu_sim(lab, fault.machine, "set", str(fault.gpu or 0), *fault.set.split())
    return time.monotonic()


def _gpu_sim(lab: Lab, machine: str, *words: str) -> None:
    result = lab.lab("fault", "--name", lab.name, machine, *words)
    assert result.code == 0, result.text


def _clear(lab: Lab, fault: Fault) -> float:
    """Undo the fault as on real hardware, and what its remedy asks for besides."""
    _gpu_sim(lab, fault.machine, fault.undo, str(fault.gpu or 0))
    for daemon_set in RESTARTS.get(fault.alert, ()):
        lab.renew(daemon_set, fault.machine)
    return time.monotonic()


def _unexpected(journal: Journal, uuids: dict[tuple[str, int], str]) -> list[str]:
    """What arrived of our own alerts that no injected fault explains."""
    expected = {
        (name, fault.machine, uuid)
        for fault in FAULTS
        for name in (fault.alert, *fault.accompanying)
        for uuid in (_uuid(fault, uuids), None)
    }
    return sorted(
        {
            f"{alert['name']} {alert['labels']}"
            for alert in journal.alerts()
            if alert["status"] == "firing"
            and "gpu_action" in alert["labels"]
            and alert["name"] != NOT_SIMULATED
            and (alert["name"], alert["labels"].get("node"), alert["labels"].get("UUID"))
            not in expected
        }
    )


def _uuid(fault: Fault, uuids: dict[tuple[str, int], str]) -> str | None:
    return None if fault.gpu is None else uuids[fault.machine, fault.gpu]


def _uuids(lab: Lab) -> dict[tuple[str, int], str]:
    samples = lab.prometheus("DCGM_FI_DEV_GPU_TEMP")
    return {
        (item["metric"]["node"], int(item["metric"]["gpu"])): item["metric"]["UUID"]
        for item in samples
    }


def _until_quiet(lab: Lab) -> None:
    """Wait until none of our alerts fires or is about to."""
    _wait(
        lambda: not lab.prometheus(OWN_ALERTS),
        RESOLVES_WITHIN_S,
        lambda: str(lab.prometheus(OWN_ALERTS)),
    )


def _wait(condition: Any, limit_s: int, explain: Any) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, f"not within {limit_s} s: {explain()}"
        time.sleep(POLL_S)


def _missing(outcomes: Any, attribute: str, journal: Journal) -> str:
    names = [item.fault.name for item in outcomes if getattr(item, attribute) is None]
    arrived = sorted(
        {f"{alert['receiver']} {alert['status']} {alert['name']}" for alert in journal.alerts()}
    )
    return f"{attribute} of {names}; what arrived: {arrived}"


def _write_table(lab: Lab, outcomes: Sequence[AlertOutcome]) -> None:
    """The measured times, for people: alerts.md in the folder of the tests' reports."""
    lines = [
        "| fault | where | alert | receiver | action | arrived | resolved |",
        "|---|---|---|---|---|---|---|",
    ]
    for item in outcomes:
        fault = item.fault
        location = fault.machine if fault.gpu is None else f"{fault.machine}/{fault.gpu}"
        lines.append(
            f"| {fault.name} | {location} | {fault.alert} | {fault.receiver} | "
            f"{item.labels.get('gpu_action')} | {item.fired_s:.0f} s | {item.resolved_s:.0f} s |"
        )
    lab.reports.mkdir(parents=True, exist_ok=True)
    (lab.reports / "alerts.md").write_text("\n".join(lines) + "\n")
