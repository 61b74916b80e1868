"""What a run tells the gate, on a leader that has nothing of the gate yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.gate import proven_nodes as sender
from gpuboot.cluster.node_gate import KEY, PROGRAM

SHELLS = ["dash", "bash"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_run_needs_nothing_of_the_gate_on_the_leader(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a run that switches it on and upgrades nodes before the phase that installs it."""
    assert not Path(PROGRAM).exists()
    kubectl = tmp_path / "kubectl"
    fake = Path(__file__).with_name("fake_kubectl.py")
    kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
    kubectl.chmod(0o755)
    state = tmp_path / "state.json"
    nodes = [{"name": "gpu1", "boot": "b1"}, {"name": "gpu2", "boot": "b1", "taints": [KEY]}]
    state.write_text(json.dumps({"pods": [], "logs": {}, "nodes": nodes}))

    def run(_: Any, command: str, stdin: str = "") -> str:
        result = subprocess.run(
            [shell, "-c", command],
            env={**os.environ, "STATE": str(state)},
            input=stdin.replace("PATH=", f"PATH={tmp_path}:"),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    monkeypatch.setattr(sender, "run", run)
    leader: Any = None
    sender.record(
        leader,
        [
            ("close", "gpu1", "Upgraded", "driver 1 -> 2: not proven yet"),
            ("open", "gpu2", "", "node", "GPU-a", "vectorAdd passed on 1 of 1 GPUs"),
        ],
    )
    closed, opened = json.loads(state.read_text())["nodes"]
    assert closed["taints"] == [KEY]
    assert closed["condition"]["reason"] == "Upgraded"
    assert opened["taints"] == []
    assert opened["annotations"]["gpuboot.io/proven-version"]
