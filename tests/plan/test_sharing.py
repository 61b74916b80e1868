"""Shared GPUs in the plan of a run: the labels of nodes, and all that is wrong at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plan.test_plan import plan


def test_a_node_is_labelled_before_it_is_waited_for() -> None:
    result = plan(
        settings={"sharing": {"gpu1": {"time_slices": 4}}, "teams": {"vision": {"gpus": 4}}}
    )
    assert result.returncode == 0, result.stderr
    names = [step["name"] for step in json.loads(result.stdout)["plan"]]
    shared = names.index("GPU sharing | Share GPUs by MIG layouts, time-slicing and MPS")
    assert shared < names.index("Rollout | Wait until nodes, workloads and GPUs are ready")
    assert "Teams | Create the namespace of team vision" in names
    assert "Teams | Apply quotas and priorities of teams" in names


def test_what_is_wrong_in_settings_and_inventory_is_told_at_once() -> None:
    wrong_sharing = {"gpu9": {"time_slices": 2, "mps": 2}, "gpu1": {"mig": "thirds"}}
    result = plan(settings={"sharing": wrong_sharing})
    output = " ".join((result.stdout + result.stderr).split())
    assert result.returncode != 0
    assert "3 problems; nothing was changed" in output
    for words in ("exclude each other", "thirds is no MIG layout", "sharing names 'gpu9'"):
        assert words in output


def test_what_the_gpus_of_a_host_cannot_do_is_told_by_preflight() -> None:
    result = plan(settings={"sharing": {"gpu1": {"mig": "all-1g.18gb"}}})
    output = " ".join((result.stdout + result.stderr).split())
    assert result.returncode != 0
    assert "H100 or H800 80GB has no MIG layout all-1g.18gb" in output
    assert "its profiles are 1g.10gb (at most 7)" in output


MIXED: dict[str, Any] = {
    "sharing": {"gpu1": {"mig": "half"}},
    "mig_layouts": {"half": [{"gpus": [0], "instances": {"3g.40gb": 2}}, {"gpus": [1]}]},
}


def test_a_docker_host_is_divided_before_anything_gets_its_gpus() -> None:
    """Of unlike profiles, as the GPU Operator's strategy would have to allow in a cluster."""
    result = plan(settings=MIXED, inventory="docker", deploy="standalone")
    assert result.returncode == 0, result.stderr
    steps = json.loads(result.stdout)["plan"]
    names = [step["name"] for step in steps]
    division_index = names.index("GPU sharing | Divide GPUs by MIG")
    changed = steps[division_index]
    whom = [*changed["hosts_with_change"], *changed["hosts_with_conditional_change"]]
    assert whom == ["@fake/gpu1"]
    phases = [name.split(" | ")[0] for name in names]
    assert phases.index("Drivers") < division_index < phases.index("DCGM") < phases.index("Toolkit")


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ({"time_slices": 2}, "time_slices and mps are for clusters"),
        ({"mps": 2}, "time_slices and mps are for clusters"),
        ({"mig": "all-1g.18gb"}, "H100 or H800 80GB has no MIG layout all-1g.18gb"),
    ],
)
def test_what_a_docker_host_cannot_do_is_refused(share: dict[str, Any], words: str) -> None:
    result = plan(settings={"sharing": {"gpu1": share}}, inventory="docker", deploy="standalone")
    output = " ".join((result.stdout + result.stderr).split())
    assert result.returncode != 0
    assert words in output
    assert "nothing was changed" in output
    assert "remedy" in output
