"""Waits that end early: all workers cordoned, hooks of Helm releases, nodes after a reboot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gpuboot.cluster import hooks
from gpuboot.cluster.cluster_state import PodIssue
from gpuboot.cluster.objects import Node
from gpuboot.cluster.stuck import (
    CERTAIN_S,
    UNCERTAIN_S,
    WHILE_OTHERS_START_S,
    Patience,
    after_reboot,
    of_workload,
)
from tests.unit.test_stuck import NODE, REASON, REFUSAL, STARTING, WEB, issue, with_issues

CORDONED = replace(NODE, taints=("node.kubernetes.io/unschedulable:NoSchedule",))
CONTROL = replace(NODE, name="cp", taints=("node-role.kubernetes.io/control-plane:NoSchedule",))
# Kubernetes v1.36.3, recorded: the only workers of a cluster with one control plane are cordoned
CLOSED = (
    "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) were unschedulable. "
    "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)


@pytest.mark.parametrize(
    ("nodes", "after_s", "settled"),
    [
        ((CORDONED, CORDONED, CONTROL), CERTAIN_S, True),
        ((CORDONED, NODE, CONTROL), WHILE_OTHERS_START_S, False),
        ((CORDONED, replace(NODE, taints=("gpuboot.io/unproven:NoSchedule",))), 150.0, False),
        ((CORDONED, replace(NODE, ready=False)), WHILE_OTHERS_START_S, False),
    ],
)
def test_cordoned_nodes_stay_so_whatever_else_starts(
    nodes: tuple[Node, ...], after_s: float, settled: bool
) -> None:
    waiting = with_issues(issue("unscheduled", CLOSED, node=""), STARTING, nodes=nodes)
    [reason] = of_workload(replace(WEB, missing=0), waiting)
    assert (reason.after_s, reason.settled) == (after_s, settled)


def test_progress_elsewhere_does_not_change_what_is_settled() -> None:
    patience, settled = Patience(), replace(REASON, subject="a/web", settled=True)
    ready = {0: 1, 20: 2, 30: 3}
    ends = [patience.over([REASON, settled], count, now) for now, count in ready.items()]
    assert ends == [[], [], [settled]]


@pytest.mark.parametrize(
    ("problem", "after_s"),
    [
        (replace(REFUSAL, pod="job-crds"), CERTAIN_S),
        (PodIssue("a", "job-crds-abcde", "n1", "r/x:1: not found", kind="image"), 40.0),
        (PodIssue("a", "job-crds-abcde", "", CLOSED, kind="unscheduled"), CERTAIN_S),
    ],
)
def test_a_hook_that_cannot_end_is_told_with_its_reason(problem: PodIssue, after_s: float) -> None:
    job_lines = [
        "job-crds\tpre-install,pre-upgrade\t\t2026-11-25T10:44:30Z",
        "job-done\tpre-install\t1\t2026-11-25T10:44:31Z",
        "job-of-another-release\tpre-install\t\t2026-11-25T10:40:00Z",
        "job-own\t\t\t2026-11-25T10:44:32Z",
    ]
    jobs = hooks.parse(job_lines, datetime(2026, 11, 25, 10, 44, 20, tzinfo=UTC).timestamp())
    assert jobs == ["job-crds"]
    other_issues = (PodIssue("a", "job-own-abcde", "n1", "not found", kind="image"), STARTING)
    state = with_issues(problem, *other_issues, nodes=(CORDONED, CONTROL))
    look = hooks.progress(jobs, "a", state)
    assert [item.after_s for item in look.stuck] == [after_s]
    assert problem.reason in look.text


def test_a_node_that_does_not_come_back_from_a_reboot_is_told_before_its_network() -> None:
    assert after_reboot("n1", "the cluster has no such node").after_s == UNCERTAIN_S
    assert after_reboot("n1", "container runtime network not ready: cni").after_s == (
        WHILE_OTHERS_START_S
    )
