"""deploys/remove.py through the real command line: what it asks, refuses, and would do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuboot.cluster import drain
from tests.cluster_answers import item_list, make_object, packed
from tests.plan.test_changes import call

INVENTORY = """
import json
from pathlib import Path

from tests.noise import framed_lines
from tests.plan.living_site import control_plane, workers

_responses = control_plane[0][0][1]["fake_responses"]
_lines = json.loads(Path(__file__).with_name("answers.json").read_text())
control_plane[0][0][1]["fake_responses"] = {"spec.nodeName%3D": framed_lines(_lines), **_responses}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """The site that a run has made, with a training on its worker."""
    pod = {
        **make_object("train-0", "ml"),
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
    }
    ready = make_object("gpu1", status={"conditions": [{"type": "Ready", "status": "True"}]})
    bodies = (ready, item_list(pod), item_list(), item_list())
    answers = packed(dict(zip(drain.paths("gpu1"), bodies, strict=True)))
    (tmp_path / "answers.json").write_text(json.dumps(["node\tgpu1", *answers]))
    path = tmp_path / "site.py"
    path.write_text(INVENTORY)
    return str(path)


def remove(inventory: str, *arguments: str) -> tuple[int, str]:
    result = call(["pyinfra", inventory, "deploys/remove.py", *arguments])
    return result.returncode, result.stderr


def test_it_asks_and_says_what_runs_there(inventory: str) -> None:
    code, output = remove(inventory, "-y", "--limit", "@fake/gpu1")
    assert code == 1
    assert (
        "this removes node gpu1 from the cluster gpuboot: its pods end, and its machine" in output
    )
    assert "1 pod is evicted: ml/train-0 (no controller: nothing makes it again, 2 GPUs)" in output
    assert "remedy: if that is what you want, name it: --data gpuboot_remove=gpu1" in output


def test_it_removes_whom_it_was_told_to(inventory: str) -> None:
    code, output = remove(inventory, "--dry", "--data", "gpuboot_remove=gpu1")
    assert code == 0, output
    assert "Drain, reset and delete the node" in output
    assert "- node gpu1" in output
    assert "interrupts GPU pods: ml/train-0" in output


def test_nobody_and_the_leader_are_refused(inventory: str) -> None:
    code, output = remove(inventory, "-y")
    assert code == 1
    assert "name one: --data gpuboot_remove=NODE (gpu1)" in output
    code, output = remove(inventory, "-y", "--data", "gpuboot_remove=cp1")
    assert code == 1
    assert "cp1 is the only control plane" in output
