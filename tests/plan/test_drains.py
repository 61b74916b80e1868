"""Drains of a run, rehearsed before anything changes: what ends the run, what the plan tells."""

from __future__ import annotations

from tests.plan.test_changes import living, shown


def test_a_budget_that_lets_no_pod_go_ends_the_run_before_it_begins() -> None:
    """Nodes that follow one another are rehearsed together."""
    done = living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "1 problem; nothing was changed [@fake/gpu1] PodDisruptionBudget ml/serve" in said
    kept = "ml/serve-gpu1 (Deployment serve) on gpu1; ml/serve-gpu2 (Deployment serve) on gpu2"
    assert f"so this run cannot drain nodes gpu1, gpu2, where it keeps {kept}" in said
    assert "remedy: give Deployment serve another replica" in said
    again = living("--dry", PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    assert "Nothing to do" in again.stderr, "nothing is drained"
    sharing = {"sharing": {"gpu1": {"time_slices": 4}}}
    shared = living("--dry", settings=sharing, PLAN_SECOND="1", PLAN_BUDGET="2 2 2")
    assert "so this run cannot drain node gpu1, where" in " ".join(shared.stderr.split())


def test_a_budget_that_is_busy_is_a_note_and_in_the_plan() -> None:
    done = living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1", PLAN_BUDGET="2 2 3")
    said = " ".join("\n".join(shown(done)).split())
    kept = "is kept by PodDisruptionBudget ml/serve (2 healthy, 2 needed)"
    for name in ("gpu1", "gpu2"):
        pod = f"ml/serve-{name} (Deployment serve) {kept}"
        assert (
            f"! node {name} is drained: its pods are moved to other nodes, as PodDisruptionBudgets "
            f"allow; now {pod}" in said
        )
        assert f"[@fake/{name}] node {name} is drained later in this run" in " ".join(
            done.stderr.split()
        )
    assert kept not in living("--dry", PLAN_DRIVER="590.1.1", PLAN_SECOND="1").stderr
