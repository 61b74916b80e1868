"""A worker that cannot be reached: the run goes on without it, and says so."""

from __future__ import annotations

from pathlib import Path

from tests.plan.test_changes import MORE_SETTINGS, call

INVENTORY = """
from tests.plan.living_site import control_plane, workers as _workers

_silent = ("127.0.0.1", {"node_name": "gpu2", "address": "192.0.2.99", "ssh_port": 1,
                         "ssh_connect_retries": 0})
workers = ([*_workers[0], _silent], _workers[1])
"""


def test_a_run_goes_on_without_a_worker_and_its_exit_code_says_so(tmp_path: Path) -> None:
    inventory = tmp_path / "site.py"
    inventory.write_text(INVENTORY)
    result = call(["pyinfra", str(inventory), "deploys/site.py", "--dry"], MORE_SETTINGS)
    assert result.returncode == 1
    assert "[127.0.0.1] cannot be reached: " in result.stderr
    assert "the run goes on without it, and does not end well (exit code 1)" in result.stderr
    assert "Deploy kube-prometheus-stack" in result.stderr  # the plan for the others
    assert "change 1 of 2 hosts" in result.stderr


def test_a_check_alone_has_a_problem_with_it(tmp_path: Path) -> None:
    inventory = tmp_path / "site.py"
    inventory.write_text(INVENTORY)
    result = call(["gpuboot", "check", str(inventory)])
    assert result.returncode == 1
    assert "1 problem; nothing was changed" in result.stderr
