"""How many commands a host is sent by a run that has nothing to do."""

from __future__ import annotations

import json
from pathlib import Path

from gpuboot.config.exit_codes import COULD_NOT_TELL
from tests.plan.test_changes import call, plan_lines

# whether sudo is needed, what the host is, and all that its operations compare
COMMANDS = 3


def test_a_run_that_has_nothing_to_do_asks_each_host_once(tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    result = call(
        ["pyinfra", "tests/plan/inventories/counted.py", "deploys/site.py", "--dry"],
        PLAN_COMMANDS=str(path),
    )
    lines = [line for line in plan_lines(result) if line]
    assert lines == ["Nothing to do: 2 hosts of gpuboot are as the settings say."]
    commands = json.loads(path.read_text())
    assert {host: len(host_commands) for host, host_commands in commands.items()} == {
        "@fake/cp1": COMMANDS,
        "@fake/gpu1": COMMANDS,
    }


def test_an_api_server_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    result = call(
        ["pyinfra", "tests/plan/inventories/counted.py", "deploys/site.py", "--dry"],
        PLAN_COMMANDS=str(path),
        PLAN_SILENT="1",
    )
    assert result.returncode == COULD_NOT_TELL
    assert "the cluster does not answer: curl: (7) Failed to connect to 10.0.0.11" in result.stderr
    commands = json.loads(path.read_text())
    assert {host: len(host_commands) for host, host_commands in commands.items()} == {
        "@fake/cp1": COMMANDS,
        "@fake/gpu1": COMMANDS,
    }


def test_a_diagnosis_reads_each_host_once(tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    call(
        ["pyinfra", "tests/plan/inventories/counted.py", "deploys/diagnose.py", "-y"],
        PLAN_COMMANDS=str(path),
        GPUBOOT_ANSWER=str(tmp_path / "answer"),
        GPUBOOT_UNTIL="0",
    )
    commands = json.loads(path.read_text())
    reads = {
        host: str(host_commands).count("GPUBOOT_END_OF_node")
        for host, host_commands in commands.items()
    }
    # each such command names the end of a part twice
    assert reads == {"@fake/cp1": 2, "@fake/gpu1": 2}
