"""Contents of run.json, for tests: runs of as many hosts as one likes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# of the lab's three machines, while more was at work on the computer: a run that changed nothing,
# and one that made the cluster
_FOLDER = Path(__file__).parent
RECORDED = json.loads((_FOLDER / "recorded_run.json").read_text())
FIRST = json.loads((_FOLDER / "recorded_first_run.json").read_text())

PHASES = (
    "Base",
    "Drivers",
    "Runtime",
    "Kubernetes",
    "Helm",
    "Storage",
    "Monitoring",
    "GPU Operator",
    "Verify",
)


def span(name: str, start: float, end: float, host: str = "", **extra: Any) -> dict[str, Any]:
    base = {"name": name, "host": host, "begun": start, "ended": end, "wait": False}
    return {**base, "operation": None, "commands": {host: 1} if host else {}, **extra}


def operation(
    phase: str, name: str, hosts: dict[str, tuple[float, float]], changed: bool = False
) -> dict[str, Any]:
    start = min(times[0] for times in hosts.values())
    end = max(times[1] for times in hosts.values())
    return {
        "phase": phase,
        "name": name,
        "begun": start,
        "ended": end,
        "seconds": end - start,
        "hosts": {host: {"begun": a, "ended": b} for host, (a, b) in hosts.items()},
        "commands": dict.fromkeys(hosts, 2),
        "files": {},
        "changed": {key: {"changes": [], "effects": [], "unknown": []} for key in hosts}
        if changed
        else {},
    }


def _hosts(operations: list[dict[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(host for item in operations for host in item["hosts"])
    return {
        name: {
            "seconds": 1.0,
            "commands": sum(item["commands"].get(name, 0) for item in operations),
            "files": 0,
            "changed": [
                f"{item['phase']} | {item['name']}"
                for item in operations
                if name in item["changed"]
            ],
            "failed": [],
            "errors": [],
            "retries": 0,
            "not_tried": [],
        }
        for name in names
    }


def run(operations: list[dict[str, Any]], spans: list[dict[str, Any]], **extra: Any) -> Any:
    phases = dict.fromkeys(item["phase"] for item in operations)
    return {
        "schema": 2,
        "gpuboot": "0.2.0",
        "pyinfra": "3.10.0",
        "cluster": "lab",
        "deploy": "site.py",
        "started": "2026-11-22T13:21:31Z",
        "seconds": max([0.0, *(item["ended"] for item in operations)]) + 0.1,
        "exit": 0,
        "phases": [
            {
                "name": name,
                "operations": sum(item["phase"] == name for item in operations),
                "seconds": sum(item["seconds"] for item in operations if item["phase"] == name),
            }
            for name in phases
        ],
        "operations": operations,
        "spans": spans,
        "hosts": _hosts(operations),
        "versions": {},
        **extra,
    }


def site(count: int, changed: bool = True, slower: float = 1.0) -> Any:
    """A run of all phases on some hosts, each of which is a little slower than the one before.

    + slower: how many times as long the phase Monitoring took
    """
    hosts = [f"node{number}" for number in range(1, count + 1)]
    spans = [span("start-up", 0.0, 0.8), span("connect", 0.8, 1.0)]
    spans += [span("connect", 0.8, 0.95, host) for host in hosts]
    spans += [span("prepare", 1.0, 2.5), span("read hosts", 1.2, 2.0)]
    spans += [span("read hosts", 1.2, 1.9, host) for host in hosts]
    operations, moment = [], 2.5
    for number, phase in enumerate(PHASES):
        seconds = (0.05, 4.0, 0.3)[number % 3] * (slower if phase == "Monitoring" else 1.0)
        taking = hosts if number < 4 else hosts[:1]
        times = {
            host: (moment, moment + seconds * (1 + place / count))
            for place, host in enumerate(taking)
        }
        operations.append(operation(phase, f"Set up {phase}", times, changed))
        if seconds > 1:
            start, end = times[taking[-1]]
            wait_span = span(f"{phase} ready", start + 0.5, end, taking[-1])
            spans.append(wait_span | {"wait": True, "operation": number})
        moment = max(end for _, end in times.values()) + 0.01
    return run(operations, spans)
