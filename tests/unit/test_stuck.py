"""Why a workload is not ready, and when a wait for it ends."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster import pod_issues
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pod_crashes import Crash
from gpuboot.cluster.readiness import (
    Progress,
    all_of,
    network_ready,
    nodes_ready,
    policy_ready,
    workloads_ready,
)
from gpuboot.cluster.stuck import (
    CERTAIN_S,
    UNCERTAIN_S,
    WHILE_OTHERS_START_S,
    Patience,
    Stuck,
    of_workload,
)
from gpuboot.cluster.workloads import Workload

WEB = Workload("Deployment", "a", "web", 2, 1, True, "", missing=1)
NODE = Node(
    name="n1", address="", ready=True, message="", allocatable={}, labels={}, taints=(),
    reported=1000.0,
)  # fmt: skip
STATE = ClusterState(workloads=(WEB,), nodes=(NODE,), clock=1000.0)
REFUSAL = PodIssue("a", "web-5f7d8c9b6d", "", "pods is forbidden: exceeded quota", kind="refused")
STARTING = PodIssue("b", "slow-x", "n1", "", kind="creating", created=990.0)
# Kubernetes v1.36.3, recorded: a Deployment in a namespace without this ServiceAccount
NO_ACCOUNT = (
    'pods "web-5f7d8c9b6d-" is forbidden: error looking up service account a/web: serviceaccount '
    '"web" not found'
)


def issue(kind: Any, reason: str, **fields: Any) -> PodIssue:
    return PodIssue(
        "a", "web-5f7d8c9b6d-abcde", fields.pop("node", "n1"), reason, kind=kind, **fields
    )


def with_issues(*issues: PodIssue, **fields: Any) -> ClusterState:
    return replace(STATE, pod_issues=issues, **fields)


def crash(count: int) -> PodIssue:
    item = Crash("a", "web-5f7d8c9b6d-abcde", "n1", "web", count=count, code=1)
    return issue("crash", str(item), crash=item)


@pytest.mark.parametrize(
    ("problem", "after_s", "beside_starting_s"),
    [
        (replace(REFUSAL, reason=NO_ACCOUNT), CERTAIN_S, CERTAIN_S),
        (
            replace(
                REFUSAL,
                reason='pods "web-" is forbidden: violates PodSecurity "restricted:latest": '
                "hostNetwork=true",
            ),
            CERTAIN_S,
            CERTAIN_S,
        ),
        (
            replace(
                REFUSAL,
                reason='Internal error occurred: failed calling webhook "no.example": no endpoints '
                'available for service "no"',
            ),
            UNCERTAIN_S,
            WHILE_OTHERS_START_S,
        ),
        (
            issue("unscheduled", "0/1 nodes are available: 1 node(s) were unschedulable", node=""),
            UNCERTAIN_S,
            WHILE_OTHERS_START_S,
        ),
        (
            issue("unscheduled", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu", node=""),
            WHILE_OTHERS_START_S,
            WHILE_OTHERS_START_S,
        ),
        (
            issue("unscheduled", "pod has unbound immediate PersistentVolumeClaims", node=""),
            WHILE_OTHERS_START_S,
            WHILE_OTHERS_START_S,
        ),
        (issue("image", "ErrImagePull in web: r/x:1: not found"), 40.0, 40.0),
        (
            issue("image", "ErrImagePull in web: dial tcp 192.0.2.1:443: i/o timeout"),
            WHILE_OTHERS_START_S,
            WHILE_OTHERS_START_S,
        ),
        (
            issue("config", 'CreateContainerConfigError in web: secret "x" not found'),
            UNCERTAIN_S,
            WHILE_OTHERS_START_S,
        ),
        (issue("mount", "FailedMount: no secret"), UNCERTAIN_S, WHILE_OTHERS_START_S),
        (crash(2), UNCERTAIN_S, WHILE_OTHERS_START_S),
    ],
)
def test_each_reason_has_its_time_and_is_quoted(
    problem: PodIssue, after_s: float, beside_starting_s: float
) -> None:
    item = replace(WEB, missing=int(problem.kind == "refused"))
    [single_reason] = of_workload(item, with_issues(problem))
    assert single_reason.after_s == after_s
    assert problem.reason in str(single_reason)
    assert single_reason.remedy
    [starting_reason] = of_workload(item, with_issues(problem, STARTING))
    assert starting_reason.after_s == beside_starting_s


@pytest.mark.parametrize(
    "problem",
    [
        issue("creating", ""),
        issue("", "containers with unready status: [web]"),
        crash(1),
        REFUSAL,  # all pods are there by now: an event outlives its cause
        replace(issue("config", "x"), namespace="b"),
        replace(issue("config", "x"), pod="other-abcde"),
    ],
)
def test_what_may_only_need_time_is_waited_for(problem: PodIssue) -> None:
    assert of_workload(replace(WEB, missing=0), with_issues(problem)) == []


def test_an_unscheduled_pod_waits_for_a_node_that_is_not_ready() -> None:
    problem = issue("unscheduled", "1 node(s) were unschedulable", node="")
    state = with_issues(problem, nodes=(NODE, replace(NODE, name="n2", ready=False)))
    [stuck_reason] = of_workload(replace(WEB, missing=0), state)
    assert stuck_reason.after_s == WHILE_OTHERS_START_S


def test_an_old_pod_that_is_not_ready_is_not_starting() -> None:
    old = replace(STARTING, created=STATE.clock - 601)
    [stuck_reason] = of_workload(replace(WEB, missing=0), with_issues(crash(3), old))
    assert stuck_reason.after_s == UNCERTAIN_S


def test_pods_that_nobody_makes_are_told_with_the_condition_or_the_controller() -> None:
    [silent] = of_workload(WEB, STATE)
    assert "1 of its pods are not made, and no event says why" in str(silent)
    assert "kube-controller-manager" in silent.remedy
    [stuck_reason] = of_workload(replace(WEB, refusal=NO_ACCOUNT), STATE)
    assert NO_ACCOUNT in str(stuck_reason)
    assert of_workload(replace(WEB, observed=False), STATE) == []


def test_a_workload_that_nothing_makes_is_stuck_and_one_of_an_operator_has_time() -> None:
    network = network_ready(ClusterState(nodes=(NODE,), clock=1000.0), ["n1"])
    names = {item.subject: item.after_s for item in network.stuck}
    assert names == {
        "kube-flannel/kube-flannel-ds": CERTAIN_S,
        "kube-system/coredns": CERTAIN_S,
        "kube-system/kube-proxy": CERTAIN_S,
    }
    [stuck_reason] = workloads_ready(with_issues(STARTING), "m", ["prometheus"]).stuck
    assert stuck_reason.after_s > WHILE_OTHERS_START_S


def test_a_policy_that_does_not_exist_is_stuck() -> None:
    [stuck_reason] = policy_ready(ClusterState()).stuck
    assert "ClusterPolicy" in str(stuck_reason)
    assert policy_ready(ClusterState(policy="notReady")).stuck == ()


def test_a_node_that_says_nothing_is_stuck_and_one_without_network_is_not() -> None:
    silent = replace(NODE, name="n2", reported=900.0)
    new_node = replace(
        NODE, name="n3", ready=False, message="network is not ready: cni plugin not initialized"
    )
    broken = replace(NODE, name="n4", ready=False, message="container runtime is down")
    state = replace(STATE, nodes=(NODE, silent, new_node, broken))
    progress = nodes_ready(state, ["n1", "n2", "n3", "n4"])
    assert [item.subject for item in progress.stuck] == ["node n2", "node n4"]
    assert "container runtime is down" in str(progress.stuck[1])
    assert progress.ready == 1


REASON = Stuck("a/web-5f7d8c9b6d-abcde on n1", "crashed", 30.0, "look")


def test_a_reason_ends_a_wait_after_its_time_alone() -> None:
    patience = Patience()
    assert [bool(patience.over([REASON], 1, now)) for now in (0, 29, 30)] == [False, False, True]


def test_progress_begins_the_time_anew_and_flapping_does_not() -> None:
    patience = Patience()
    ready = {0: 1, 20: 2, 30: 1, 40: 2, 50: 2}
    ends = [bool(patience.over([REASON], count, now)) for now, count in ready.items()]
    assert ends == [False, False, False, False, True]


def test_a_reason_that_is_away_for_long_begins_anew_and_a_pause_between_crashes_does_not() -> None:
    patience = Patience()
    patience.over([REASON], 1, 0)
    patience.over([], 1, 21)
    renewed = replace(REASON, subject="a/web-5f7d8c9b6d-fghij on n1")  # made anew
    assert patience.over([renewed], 1, 31) == []
    patience.over([], 1, 45)
    assert patience.over([renewed], 1, 46) == []
    assert patience.over([renewed], 1, 61) == [renewed]


def test_all_of_counts_what_is_ready_and_keeps_reasons_of_what_is_not() -> None:
    late = Progress(False, "late", stuck=(REASON,), ready=1)
    finished = Progress(True, "done", stuck=(replace(REASON, cause="over"),), ready=2)
    combined = all_of(late, finished)
    assert (combined.stuck, combined.ready) == ((REASON,), 3)


def pod(name: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "a", "creationTimestamp": "2026-11-25T07:00:00Z"}
    return {"metadata": meta, "spec": {"nodeName": "n1"}, "status": status}


def event(reason: str, kind: str, name: str, message: str, time: str = "10") -> dict[str, Any]:
    involved_object = {"kind": kind, "namespace": "a", "name": name}
    stamp = f"2026-11-25T07:00:{time}Z"
    return {
        "reason": reason,
        "involvedObject": involved_object,
        "message": message,
        "lastTimestamp": stamp,
    }


def parsed(pods: list[dict[str, Any]], *events: dict[str, Any]) -> tuple[PodIssue, ...]:
    answers = [pods] + [
        [item for item in events if item["reason"] == reason]
        for reason in ("FailedCreate", "FailedMount", "FailedCreatePodSandBox")
    ]
    text = "".join(json.dumps({"items": items}) + "\n200 \x1e\n" for items in answers)
    packed = base64.b64encode(gzip.compress(text.encode())).decode()
    return pod_issues.parse_pod_issues([f"answers\t{packed}", "clock\t1000", "end\tok"])


WAITING = {"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}}


def test_events_tell_why_pods_are_not_made_and_not_begun() -> None:
    waiting_pod = pod("web-1", phase="Pending", containerStatuses=[WAITING])
    pulling = pod(
        "web-2",
        phase="Pending",
        containerStatuses=[WAITING],
        conditions=[{"type": "PodReadyToStartContainers", "status": "True"}],
    )
    issues = parsed(
        [waiting_pod, pulling],
        event("FailedCreate", "ReplicaSet", "web-5f7d8c9b6d", "an older one", "01"),
        event("FailedCreate", "ReplicaSet", "web-5f7d8c9b6d", NO_ACCOUNT, "30"),
        event("FailedMount", "Pod", "web-1", 'secret "x" not found'),
        event("FailedCreatePodSandBox", "Pod", "web-2", "it is over by now"),
    )
    assert [(item.pod, item.kind, item.reason) for item in issues] == [
        ("web-1", "mount", 'FailedMount: secret "x" not found'),
        ("web-2", "creating", ""),
        ("web-5f7d8c9b6d", "refused", NO_ACCOUNT),
    ]
    assert issues[0].created == 1795590000.0


def test_what_a_registry_says_is_quoted() -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": "r/x:1: not found"}}
    [parsed_issue] = parsed(
        [pod("web-1", phase="Pending", containerStatuses=[{"name": "web", "state": state}])]
    )
    assert (parsed_issue.kind, parsed_issue.reason) == (
        "image",
        "ErrImagePull in web: r/x:1: not found",
    )


def test_a_refusal_that_is_over_is_not_told() -> None:
    message = workloads_ready(with_issues(REFUSAL), "a").text
    assert "exceeded quota" in message
    healthy = replace(WEB, missing=0)
    assert "exceeded quota" not in workloads_ready(
        with_issues(REFUSAL, workloads=(healthy,)), "a"
    ).text  # fmt: skip
