"""What a plan prints at its most talkative: all that pyinfra prints, and no secret."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan.test_changes import call, run_living


@pytest.fixture(scope="module")
def secret_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("secrets") / "key"
    file.write_text("very-secret-0123456789abcdef012\n")
    file.chmod(0o600)
    return {
        "proxy": {"https": "http://me:very-secret@proxy.example:3128"},
        "registries": {"mirror.example": {"username": "me", "password": {"file": str(file)}}},
        "alertmanager": {"pagerduty": {"routing_key": {"file": str(file)}}},
        "monitoring": {"values": {"prometheus": {"token": "very-secret", "plain": "shown"}}},
    }


@pytest.fixture(scope="module")
def verbose(secret_settings: dict[str, Any]) -> str:
    """All that a plan prints at its most talkative."""
    result = run_living("--dry", "-vvv", "--diff", settings=secret_settings)
    assert result.returncode == 0, result.stderr
    return result.stderr + result.stdout


def test_with_v_everything_is_as_pyinfra_prints_it(verbose: str) -> None:
    assert "Detected changes may not include" in verbose
    table, plan = verbose.split("Detected changes:")[1].split("\nPlan for ")
    assert table.count("Rollout | Wait until nodes, workloads and GPUs are ready") == 1
    assert "prometheus.plain shown" in plan


def test_secrets_are_shown_nowhere(verbose: str, secret_settings: dict[str, Any]) -> None:
    result = call(["gpuboot", "plan", "tests/plan/inventories/existing.py"], secret_settings)
    assert result.returncode == 0, result.stderr
    for output in (verbose, result.stdout + result.stderr):
        assert "prometheus.token" in output
        assert "(hidden)" in output
        assert "very-secret" not in output
