"""Drains of a run, rehearsed before anything changes: what ends the run, what the plan tells."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.plan.test_changes import plan_lines, run_living

SHARED = {"sharing": {"gpu1": {"time_slices": 4}, "gpu2": {"mig": "all-1g.10gb"}}}


def test_a_budget_that_lets_no_pod_go_ends_the_run_before_it_begins() -> None:
    """Nodes that follow one another are rehearsed together."""
    result = run_living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    output = " ".join(result.stderr.split())
    assert result.returncode == 1
    assert "1 problem; nothing was changed [@fake/gpu1] PodDisruptionBudget ml/serve" in output
    blocked = "ml/serve-gpu1 (Deployment serve) on gpu1; ml/serve-gpu2 (Deployment serve) on gpu2"
    assert f"so this run cannot drain nodes gpu1, gpu2, where it keeps {blocked}" in output
    assert "remedy: have the budget spare a pod" in output
    newer = run_living("--dry", PLAN_KUBERNETES="1.36.4", PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    kubelets = " ".join(newer.stderr.split())
    assert "so this run cannot drain nodes gpu1, gpu2, where" in kubelets, "for their kubelets"
    unchanged = run_living("--dry", PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    assert "Nothing to do" in unchanged.stderr, "nothing is drained"
    sharing = {"sharing": {"gpu1": {"time_slices": 4}}}
    shared = run_living("--dry", settings=sharing, PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    assert "so this run cannot drain node gpu1, where" in " ".join(shared.stderr.split())


def test_a_budget_that_is_busy_is_a_note_and_in_the_plan() -> None:
    result = run_living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1", PLAN_BUDGET="2 2 3")
    output = " ".join("\n".join(plan_lines(result)).split())
    reason = "is kept by PodDisruptionBudget ml/serve (2 healthy, 2 needed)"
    for name in ("gpu1", "gpu2"):
        pod = f"ml/serve-{name} (Deployment serve) {reason}"
        assert (
            f"! node {name} is drained: its pods are moved to other nodes, as PodDisruptionBudgets "
            f"allow; now {pod}" in output
        )
        assert f"[@fake/{name}] node {name} is drained later in this run" in " ".join(
            result.stderr.split()
        )
    assert reason not in run_living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1").stderr


@pytest.mark.parametrize(
    ("cluster", "changes"),
    [("1.36.4", {}), ("", {}), ("", {"exporter": {"scrape_interval": "30s"}})],
)
def test_gpus_come_to_be_shared_otherwise_in_the_same_stay(
    cluster: str, changes: dict[str, Any]
) -> None:
    """The GPU Operator goes first, so that labels find what they name."""
    settings = {**SHARED, **changes}
    result = run_living(
        "--dry", settings=settings, PLAN_KUBERNETES=cluster, PLAN_DRIVER="590.1.1", PLAN_SECOND="1"
    )
    output = "\n".join(plan_lines(result))
    for name in ("gpu1", "gpu2"):
        assert output.count(f"node {name} is cordoned") == 1
        assert output.count(f"node {name} is drained") == 1
    titles = list(dict.fromkeys(re.findall(r"^  (.*) · ", output, re.MULTILINE)))
    operator = next(title for title in titles if title.startswith("Deploy gpu-operator"))
    upgrade = "Upgrade the workers: driver, container toolkit, containerd, kubelet"
    assert titles.index(operator) < titles.index(upgrade)
    assert titles.count(operator) == 1
    assert "GPU sharing" not in output
    assert "~ node gpu1: label nvidia.com/device-plugin.config" in output or (
        "+ node gpu1: label nvidia.com/device-plugin.config" in output
    )


def test_they_do_not_where_the_operator_needs_what_a_later_phase_makes() -> None:
    settings = {**SHARED, "exporter": {"kind": "chart"}}
    result = run_living("--dry", settings=settings, PLAN_DRIVER="590.1.1", PLAN_SECOND="1")
    output = "\n".join(plan_lines(result))
    assert (
        output.index("Node upgrades") < output.index("GPU Operator") < output.index("GPU sharing")
    )
    assert output.count("node gpu1 is drained") == 2
