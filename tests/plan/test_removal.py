"""deploys/remove.py through the real command line: what it asks, refuses, and would do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboot.kubernetes import drain
from tests.cluster_answers import listed, named, packed
from tests.plan.test_changes import call

INVENTORY = """
import json
from pathlib import Path

from tests.noise import own
from tests.plan.living_site import control_plane, workers

_responses = control_plane[0][0][1]["fake_responses"]
_lines = json.loads(Path(__file__).with_name("answers.json").read_text())
control_plane[0][0][1]["fake_responses"] = {"spec.nodeName%3D": own(_lines), **_responses}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """The site that a run has made, with a training on its worker."""
    pod = {
        **named("train-0", "ml"),
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
    }
    ready = named("gpu1", status={"conditions": [{"type": "Ready", "status": "True"}]})
    bodies = (ready, listed(pod), listed(), listed())
    answers = packed(dict(zip(drain.paths("gpu1"), bodies, strict=True)))
    (tmp_path / "answers.json").write_text(json.dumps(["node\tgpu1", *answers]))
    path = tmp_path / "site.py"
    path.write_text(INVENTORY)
    return str(path)


def remove(inventory: str, *arguments: str) -> tuple[int, str]:
    done = call(["pyinfra", inventory, "deploys/remove.py", *arguments])
    return done.returncode, done.stderr


def test_it_asks_and_says_what_runs_there(inventory: str) -> None:
    code, said = remove(inventory, "-y", "--limit", "@fake/gpu1")
    assert code == 1
    assert "this removes node gpu1 from the cluster gpuboot: its pods end, and its machine" in said
    assert "1 pod is evicted: ml/train-0 (no controller: nothing makes it again, 2 GPUs)" in said
    assert "remedy: if that is what you want, name it: --data gpuboot_remove=gpu1" in said


def test_it_removes_whom_it_was_told_to(inventory: str) -> None:
    code, said = remove(inventory, "--dry", "--data", "gpuboot_remove=gpu1")
    assert code == 0, said
    assert "Drain, reset and delete the node" in said
    assert "- node gpu1" in said
    assert "interrupts GPU pods: ml/train-0" in said


def test_nobody_and_the_leader_are_refused(inventory: str) -> None:
    code, said = remove(inventory, "-y")
    assert code == 1
    assert "name one: --data gpuboot_remove=NODE (gpu1)" in said
    code, said = remove(inventory, "-y", "--data", "gpuboot_remove=cp1")
    assert code == 1
    assert "cp1 is the only control plane" in said
