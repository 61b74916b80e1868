"""Shipping logs in the plan of a run, and that a password goes nowhere but into a Secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plan.test_parts import plan_output
from tests.plan.test_plan import plan

PASSWORD = "correct-horse-battery"


@pytest.fixture
def shipped(tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    file.chmod(0o600)
    loki = {
        "url": "https://logs.example.org",
        "username": "gpu",
        "password": {"file": str(file)},
    }
    return {"logs": {"enabled": True, "loki": loki}}


def test_logs_come_after_monitoring_and_are_waited_for(shipped: dict[str, Any]) -> None:
    result = plan(settings=shipped)
    assert result.returncode == 0, result.stderr
    names = [step["name"] for step in json.loads(result.stdout)["plan"]]
    logs = [name for name in names if name.startswith("Logs | ")]
    assert logs == [
        "Logs | Create the namespace",
        "Logs | Check the Secrets that logs.loki names",
        "Logs | Store Loki's credentials in a Secret",
        "Logs | Download chart fluent-bit 0.58.1",
        "Logs | Renew the custom resources of fluent-bit",
        "Logs | Deploy fluent-bit (fluent-bit 0.58.1)",
        "Logs | Renew the custom resources of fluent-bit",
        "Logs | Deploy fluent-bit-events (fluent-bit 0.58.1)",
    ]
    assert names.index(logs[-1]) < names.index(
        "Rollout | Wait until nodes, workloads and GPUs are ready"
    )
    assert PASSWORD not in result.stdout + result.stderr


def test_a_living_site_is_told_what_comes(shipped: dict[str, Any]) -> None:
    lines = plan_output(settings=shipped)
    assert any(line.startswith("+ Helm release fluent-bit:") for line in lines), lines
    assert any(line.startswith("+ Helm release fluent-bit-events:") for line in lines)
    assert any("Secret monitoring/gpuboot-logs" in line for line in lines)
    assert not any(PASSWORD in line for line in lines)


def test_a_file_that_is_missing_stops_the_run_before_anything() -> None:
    loki = {"url": "https://l.example.org", "bearer_token": {"file": "/nowhere/token"}}
    result = plan(settings={"logs": {"enabled": True, "loki": loki}})
    assert result.returncode != 0
    output = " ".join((result.stdout + result.stderr).split())
    assert "logs.loki.bearer_token.file: /nowhere/token" in output
    assert "nothing was changed" in output


def test_what_ships_logs_goes_when_nobody_wants_it() -> None:
    lines = plan_output(settings={}, PLAN_LOGS="1")
    removed = [line for line in lines if line.startswith("- Helm release")]
    assert sorted(removed) == [
        "- Helm release fluent-bit-events: was fluent-bit 0.58.1",
        "- Helm release fluent-bit: was fluent-bit 0.58.1",
    ]
