"""Settings that change in one run on a living site: each pair of them can be planned."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from tests.plan.test_changes import run_living
from tests.plan.test_plan import PHASES, phase

LOKI = {"url": "https://loki.example/loki/api/v1/push"}
# what changes: settings, and what the site was made with
CHANGES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "gate": ({"gate": {"enabled": True}}, {}),
    "sharing": ({"sharing": {"gpu1": {"mig": "all-1g.10gb"}}}, {}),
    "driver": ({}, {"PLAN_DRIVER": "580.65.06"}),
    "dcgm": ({"dcgm": "host"}, {}),
    "exporter": ({"exporter": {"kind": "chart"}}, {}),
    "monitoring": ({"monitoring": {"enabled": False}}, {}),
    "virtual address": ({"cluster": {"virtual_ip": "192.0.2.10"}}, {}),
    "logs": ({"logs": {"enabled": True, "loki": LOKI}}, {}),
    "storage": ({"monitoring": {"storage": {"persistent": False}}}, {}),
    "teams": ({"teams": {"vision": {"gpus": 1}}}, {}),
    "runtime": ({"runtime": {"mode": "runtimeclass"}}, {}),
    "worker": ({}, {"PLAN_NEW": "1"}),
    "begun upgrade": ({}, {"PLAN_BEGUN": "1"}),
    "Kubernetes": ({"versions": {"kubernetes": {"version": "1.36.4"}}}, {}),
}
# those in which nodes are upgraded before the phase that installs the gate
GATE_PAIRS = [("gate", "driver"), ("gate", "begun upgrade"), ("gate", "Kubernetes")]


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Settings laid over each other."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            old = result.get(key)
            are_mappings = isinstance(old, dict) and isinstance(value, dict)
            result[key] = merged(old, value) if are_mappings and isinstance(old, dict) else value
    return result


def check(pair: tuple[str, ...]) -> None:
    """Plan a run with these changes."""
    settings = merged(*(CHANGES[name][0] for name in pair))
    environment = {key: value for name in pair for key, value in CHANGES[name][1].items()}
    result = run_living("--dry", "--json", settings=settings, **environment)
    assert result.returncode == 0, result.stderr[-3000:]
    steps = json.loads(result.stdout)["plan"]
    order = list(dict.fromkeys(phase(step) for step in steps))
    assert order, "nothing changes"
    assert order == [name for name in PHASES if name in order]


@pytest.mark.parametrize("pair", GATE_PAIRS, ids="+".join)
def test_the_gate_is_switched_on_with_another_change(pair: tuple[str, str]) -> None:
    check(pair)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", [pair for pair in combinations(CHANGES, 2) if pair not in GATE_PAIRS], ids="+".join
)
def test_two_changes_in_one_run(pair: tuple[str, str]) -> None:
    check(pair)
