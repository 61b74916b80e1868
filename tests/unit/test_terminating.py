"""Namespaces that are being deleted: what they wait for, and what drift says of them."""

from __future__ import annotations

from gpuboot.cli.drift_report import DECISION, REMEDY, TERMINATING, from_plan
from gpuboot.cluster.terminating import OPERATION, decisions, terminating
from gpuboot.config.settings import parse_settings
from gpuboot.monitoring.components import namespaces
from gpuboot.plan import Change, Decision, Plan, Step
from tests.unit.diagnose_cases_absent import STUCK

NAMES = terminating([STUCK, {"metadata": {"name": "ml"}, "spec": {}}])


def test_what_a_namespace_waits_for_is_in_the_clusters_words() -> None:
    assert list(NAMES) == ["stuck"]
    assert "finalizers remaining: example.com/hold in 1 resource instances" in NAMES["stuck"]
    own = {"name": "held", "deletionTimestamp": "2026-09-21T13:00:00Z", "finalizers": ["a/b"]}
    assert terminating([{"metadata": own, "spec": {"finalizers": ["kubernetes"]}}]) == {
        "held": "finalizers of its own: a/b"
    }


def test_only_namespaces_that_a_run_needs_are_named() -> None:
    assert decisions(NAMES, ["monitoring"]) == []
    [decision] = decisions(NAMES, ["monitoring", "stuck"])
    assert "Namespace stuck is being deleted" in decision.what
    assert "whoever its finalizers name has to act" in decision.why


def test_drift_does_not_say_that_a_run_puts_it_right() -> None:
    release = Change(subject="Helm release gpu-operator", new="v26.7.0")
    file = Decision(what="file x", why="y")
    step = Step(phase="GPU Operator", name="Deploy gpu-operator", hosts={"cp1": [release]})
    decisions_made = [
        Step(phase="Kubernetes", name="Compare the rights of everybody", hosts={"cp1": [file]}),
        Step(phase="Kubernetes", name=OPERATION, hosts={"cp1": decisions(NAMES, ["stuck"])}),
    ]

    def remedies(*decided: Step) -> list[str]:
        plan = Plan(cluster="lab", hosts=("cp1",), steps=[step], decisions=[*decided])
        return [item.remedy for item in from_plan(plan.to_json()).differences]

    assert remedies(decisions_made[0]) == [REMEDY, DECISION]
    assert remedies(*decisions_made) == [TERMINATING, DECISION, TERMINATING]


def test_the_namespaces_of_a_run() -> None:
    names = namespaces(parse_settings({}))
    assert {"gpu-operator", "monitoring", "kube-flannel", "local-path-storage"} <= set(names)
