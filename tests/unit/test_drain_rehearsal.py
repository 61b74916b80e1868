"""What keeps a run from draining its nodes is told before the first, and what holds that up."""

from __future__ import annotations

from typing import Any

import pytest

from deploys.parts.cluster.pods_fact import PodsOfNodes
from gpuboot.cluster import drain
from gpuboot.cluster import drain_rehearsal as rehearsal
from gpuboot.cluster.drain import NodePods
from gpuboot.cluster.drain_rehearsal import PlannedDrain
from tests.cluster_answers import item_list, make_object, packed
from tests.unit.test_drain import owner, pod

Json = dict[str, Any]
WEB = {"app": "web"}
PLANS = {
    name: PlannedDrain(host=f"host-{name}", timeout_s=600, empty_dirs=True, unmanaged=False)
    for name in ("gpu1", "gpu2")
}


def web(number: int = 1, **fields: Any) -> Json:
    manifest = pod(f"web-5d-{number}", owner("ReplicaSet", "web-5d"), **fields)
    manifest["metadata"]["labels"] = {**WEB, "pod-template-hash": "5d"}
    return manifest


def budget(healthy: int, needed: int, expected: int, name: str = "web", **fields: Any) -> Json:
    """As the disruption controller leaves it."""
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": expected,
        "disruptionsAllowed": max(healthy - needed, 0),
        "observedGeneration": fields.pop("observed", 1),
        "conditions": fields.pop("conditions", []),
    }
    spec = {"selector": {"matchLabels": WEB}, **fields.pop("spec", {})}
    manifest = make_object(name, "ml", spec=spec, status=status)
    manifest["metadata"] |= {"generation": 1, **fields}
    return manifest


def pods(*on_gpu1: Json, gpu2: tuple[Json, ...] = (), budgets: tuple[Json, ...] = ()) -> Any:
    paths = drain.paths_of_pods(["gpu1", "gpu2"])
    bodies = (item_list(*on_gpu1), item_list(*gpu2), item_list(*budgets))
    lines = ["node\tgpu1", "node\tgpu2", *packed(dict(zip(paths, bodies, strict=True)))]
    return PodsOfNodes().value(lines)


SPARE = "have the budget spare a pod, such as by maxUnavailable: 1 ("
BUDGET_REMEDY = "give Deployment web another replica, or the budget a lower minAvailable ("
FAILED = {
    "type": "DisruptionAllowed",
    "status": "False",
    "reason": "SyncFailed",
    "message": 'found no controllers for pod "web-5d-1"',
}


@pytest.mark.parametrize(
    ("broken", "cause", "remedy"),
    [
        (
            budget(3, 3, 3, spec={"maxUnavailable": 0}),
            "it needs 3 healthy pods, and counts 3",
            SPARE,
        ),
        (
            budget(2, 2, 2, spec={"minAvailable": "100%"}),
            "it needs 2 healthy pods, and counts 2",
            SPARE,
        ),
        (
            budget(2, 2, 2, spec={"minAvailable": 2}),
            "it needs 2 healthy pods, and counts 2",
            BUDGET_REMEDY,
        ),
        (
            budget(1, 1, 1, spec={"minAvailable": 1}),
            "it needs 1 healthy pod, and counts 1",
            BUDGET_REMEDY,
        ),
        (
            budget(2, 5, 2, spec={"minAvailable": 5}),
            "it needs 5 healthy pods, and counts 2",
            BUDGET_REMEDY,
        ),
        # it is busy as well
        (
            budget(0, 2, 2, spec={"minAvailable": 2}),
            "it needs 2 healthy pods, and counts 2",
            BUDGET_REMEDY,
        ),
        (
            budget(0, 0, 0, spec={"maxUnavailable": 1}, conditions=[FAILED]),
            "Kubernetes cannot work out its status: found no controllers",
            "give the budget a number as minAvailable, below that of its pods (",
        ),
    ],
)
def test_a_budget_that_lets_no_pod_go_ends_the_run_before_it_begins(
    broken: Json, cause: str, remedy: str
) -> None:
    node_pods = pods(web(1), gpu2=(web(2),), budgets=(broken,))
    [problem] = rehearsal.problems(PLANS, node_pods)
    assert problem.host == "host-gpu1"
    assert problem.cause.startswith(
        "PodDisruptionBudget ml/web lets no pod go however long one waits: " + cause
    )
    assert problem.cause.endswith(
        "so this run cannot drain nodes gpu1, gpu2, where it keeps ml/web-5d-1 (Deployment web) on "
        "gpu1; ml/web-5d-2 (Deployment web) on gpu2"
    )
    assert problem.remedy.startswith(remedy)
    assert "kubectl --namespace ml edit poddisruptionbudget web" in problem.remedy
    assert rehearsal.warnings(PLANS, node_pods) == []
    only = {"gpu2": PLANS["gpu2"]}
    [gpu2_problem] = rehearsal.problems(only, node_pods)
    assert (gpu2_problem.host, "gpu1" in gpu2_problem.cause) == ("host-gpu2", False)


@pytest.mark.parametrize(
    ("busy", "words"),
    [
        (budget(2, 2, 3), "(2 healthy, 2 needed)"),
        (budget(1, 2, 3), "(1 healthy, 2 needed)"),
        (budget(3, 2, 3, observed=0), "which Kubernetes has not looked at since it changed"),
        (budget(2, 2, 2, observed=0), "which Kubernetes has not looked at since it changed"),
        (
            budget(1, 1, 1, ownerReferences=[{"kind": "Cluster", "name": "db"}]),
            "(it needs 1 healthy pod, and counts 1), unless Cluster db, which made it, moves it",
        ),
    ],
)
def test_a_budget_that_is_busy_is_a_note(busy: Json, words: str) -> None:
    """So is one of an operator, which may move its pods itself when their node is cordoned."""
    node_pods = pods(web(1), budgets=(busy,))
    assert rehearsal.problems(PLANS, node_pods) == []
    [line] = rehearsal.warnings(PLANS, node_pods)
    begin = "[host-gpu1] node gpu1 is drained later in this run, which waits for at most 600 s; now"
    assert line.startswith(f"{begin} ml/web-5d-1 (Deployment web) is kept by ")
    assert words in line
    assert list(rehearsal.busy(PLANS, node_pods)) == ["gpu1"]


@pytest.mark.parametrize(
    ("pod_manifest", "its_budget"),
    [
        (web(1), budget(3, 2, 3)),
        (web(1, ready=False), budget(2, 2, 2)),
        (web(1, ready=False), budget(0, 2, 2, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})),
        (web(1, phase="Pending"), budget(1, 2, 2)),
        (web(1, phase="Succeeded"), budget(1, 2, 2)),
        (web(1, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), budget(2, 2, 2)),
        (web(1), budget(2, 2, 2, spec={"selector": {"matchLabels": {"app": "other"}}})),
        (pod("exporter", owner("DaemonSet", "e"), labels=WEB), budget(2, 2, 2)),
    ],
)
def test_pods_that_may_go(pod_manifest: Json, its_budget: Json) -> None:
    """As pkg/registry/core/pod/storage/eviction.go has it."""
    node_pods = pods(pod_manifest, budgets=(its_budget,))
    assert (rehearsal.problems(PLANS, node_pods), rehearsal.warnings(PLANS, node_pods)) == ([], [])


def test_a_pod_of_two_budgets_never_goes() -> None:
    budgets = budget(3, 1, 3), budget(3, 3, 3, name="all")
    [problem] = rehearsal.problems(PLANS, pods(web(1), budgets=budgets))
    assert problem.cause == (
        "ml/web-5d-1 (Deployment web) cannot leave node gpu1, which this run drains: several "
        "PodDisruptionBudgets count it (web, all), and the Eviction API lets no such pod go"
    )
    assert rehearsal.problems(PLANS, pods(web(1, phase="Pending"), budgets=budgets)) == []


def test_pods_that_may_not_be_ended_are_named_before() -> None:
    cache = {"volumes": [{"name": "cache", "emptyDir": {}}]}
    node_pods = pods(pod("alone"), web(1, **cache), pod("done", phase="Succeeded"))
    [problem] = rehearsal.problems(PLANS, node_pods)
    assert "ml/alone (no controller: nothing makes it again) has nobody" in problem.cause
    assert "web" not in problem.cause
    strict = PlannedDrain(host="h", timeout_s=1, empty_dirs=False, unmanaged=True)
    [problem] = rehearsal.problems({"gpu1": strict}, node_pods)
    assert "ml/web-5d-1 (Deployment web) has data in emptyDir cache" in problem.cause
    assert "alone" not in problem.cause


def test_an_api_that_does_not_answer_is_told() -> None:
    silent = drain.parse_pods(["error\tno route", "end\tok"], ["gpu1", "gpu2"])
    assert silent["gpu1"] == NodePods(error="no route")
    assert rehearsal.problems(PLANS, silent) == []
    [line] = rehearsal.warnings(PLANS, silent)
    assert line.startswith("[host-gpu1] whether pods may leave node gpu1 is not known")
    assert line.endswith("drained: no route")
