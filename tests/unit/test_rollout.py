"""One wait for all that was applied: each part has its own time and its own remedy."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand

from deploys.engine import waiting
from deploys.parts.cluster import crash_loops
from deploys.parts.cluster.fact import Cluster, PodIssues
from deploys.parts.rollout import operations as rollout
from gpuboot.cluster import stuck
from gpuboot.cluster.cluster_state import ClusterState, PodIssue
from gpuboot.cluster.objects import Node
from gpuboot.cluster.pod_crashes import Crash
from gpuboot.cluster.readiness import (
    Part,
    Progress,
    all_of,
    network_ready,
    nodes_ready,
    policy_ready,
    workloads_ready,
)
from gpuboot.cluster.stuck import Stuck
from gpuboot.cluster.workloads import Workload


class Host:
    """The leader: it remembers what an operation with nothing to do told."""

    print_prefix = "[cp1] "
    message = ""

    def noop(self, text: str) -> None:
        self.message = text


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    leader = Host()
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    monkeypatch.setattr(rollout, "host", leader)
    monkeypatch.setattr(rollout, "executing", lambda: True)
    answers = {PodIssues: ()}
    monkeypatch.setattr(
        rollout, "read", lambda fact, **arguments: answers.get(fact, ClusterState())
    )
    return leader


def part(name: str, looks: Iterable[bool], timeout_s: float = 60) -> Part:
    answers = iter(looks)
    return Part(
        lambda state: Progress(
            is_ready := next(answers), name if is_ready else f"{name} is missing"
        ),
        timeout_s,
        f"look at {name}",
    )


def messages(parts: list[Part]) -> list[str]:
    commands: Any = list(rollout.complete._inner(parts))
    assert all(isinstance(item, FunctionCommand) for item in commands)
    return [item.args[0] for item in commands]


def test_it_waits_for_the_last_part(host: Host) -> None:
    assert messages([part("pods", [True, True, True]), part("GPUs", [False, False, True])]) == []
    assert host.message == "pods | GPUs"


def test_a_late_part_tells_its_own_remedy(host: Host) -> None:
    slow = part("GPUs", [False] * 9)
    assert messages([slow, part("pods", [False] * 9, timeout_s=0), part("nodes", [True] * 9)]) == [
        "not done after 0 s: pods is missing\n    remedy: look at pods; then run again"
    ]
    assert not host.message


def test_what_cannot_get_ready_ends_the_wait_with_its_own_remedy(host: Host) -> None:
    reason = Stuck("a/web", "its pods are refused: exceeded quota", 0.0, "give it more")
    [message] = messages([Part(lambda _: Progress(False, "web", stuck=(reason,)), 600, "look")])
    assert "nothing more gets ready: a/web: its pods are refused: exceeded quota" in message
    assert message.endswith("remedy: give it more; then run again")


def test_what_refuses_the_reports_of_a_silent_node_is_named(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = 'Internal error occurred: failed calling webhook "gone.example.com": no service'
    node = Node(name="gpu1", address="", ready=True, message="",
                      allocatable={}, labels={}, taints=(), reported=900.0)  # fmt: skip
    answers = {PodIssues: (), Cluster: ClusterState(nodes=(node,), clock=1000.0)}
    monkeypatch.setattr(rollout, "read", lambda fact, **arguments: answers.get(fact, message))
    monkeypatch.setattr(stuck, "CERTAIN_S", 0.0)
    [failure] = messages([Part(lambda state: nodes_ready(state, ["gpu1"]), 600, "look")])
    assert f"node gpu1: the API server refuses its kubelet's reports: {message}" in failure
    assert "remedy: the admission webhook gone.example.com does not answer" in failure


def test_a_part_that_has_failed_is_not_waited_for(host: Host) -> None:
    [message] = messages([Part(lambda _: Progress(False, "no layout", failed=True), 600, "look")])
    assert message == "no layout\n    remedy: look; then run again"


def test_all_that_are_late_are_told(host: Host) -> None:
    [message] = messages(
        [part("pods", [False] * 9, timeout_s=0), part("GPUs", [False] * 9, timeout_s=0)]
    )
    assert "pods is missing; not done after 0 s: GPUs is missing" in message
    assert "remedy: look at pods; look at GPUs; then run again" in message


def test_the_wait_outlasts_the_latest_part(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[float] = []

    def wait_until(host: Host, probe: Any, timeout_s: float) -> Progress:
        timeouts.append(timeout_s)
        return all_of(probe())

    monkeypatch.setattr(rollout, "wait_until", wait_until)
    messages([part("pods", [True], timeout_s=5), part("GPUs", [True], timeout_s=900)])
    assert timeouts[0] > 900


def test_nothing_is_waited_for_in_a_plan(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "executing", lambda: False)
    assert messages([part("pods", [])]) == []
    assert host.message == "there is nothing to wait for before the run"


def test_nodes_that_are_away_are_not_waited_for(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = tuple(
        Node(name=name, address="", ready=name != "gpu2", message="",
                   allocatable={}, labels={}, taints=())
        for name in ("cp1", "gpu1", "gpu2")
    )  # fmt: skip
    flannel = Workload("DaemonSet", "kube-flannel", "kube-flannel-ds", 3, 2, True, "")
    gpu1_workload = replace(flannel, name="of-gpu1", desired=1, ready=1)
    proxy = replace(flannel, namespace="kube-system", name="kube-proxy")
    dns = replace(proxy, kind="Deployment", name="coredns", desired=2)
    cluster_state = ClusterState(nodes=nodes, workloads=(flannel, gpu1_workload, proxy, dns))
    monkeypatch.setattr(
        rollout, "read", lambda fact, **_: () if fact is PodIssues else cluster_state
    )
    ready = Part(lambda state: network_ready(state, ["cp1", "gpu1"]), 0, "look")
    assert list(rollout.complete._inner([ready], lambda: ["gpu2"])) == []
    assert "2 of 2 nodes Ready" in host.message
    [late] = messages([ready])
    assert "kube-flannel-ds (2 of 3 nodes)" in late


def test_a_node_that_is_away_excuses_no_other_one() -> None:
    workload = Workload("DaemonSet", "gpu", "plugin", 2, 1, True, "")
    state = ClusterState(workloads=(workload,), absent=("gpu2",))
    assert not workloads_ready(state, "gpu", {"plugin": 2}).complete
    assert workloads_ready(state, "gpu", {"plugin": 1}).complete
    assert not workloads_ready(replace(state, absent=()), "gpu", {"plugin": 1}).complete


def test_the_pod_of_a_statefulset_on_a_node_that_is_away_is_waited_for_by_nobody() -> None:
    """Kubernetes makes no other one: that of a silent node may still run."""
    workload = Workload("StatefulSet", "monitoring", "alertmanager", 1, 0, True, "")
    pod_issue = PodIssue("monitoring", "alertmanager-0", "gpu2", "")
    state = ClusterState(workloads=(workload,), absent=("gpu2",), pod_issues=(pod_issue,))
    assert workloads_ready(state, "monitoring").complete
    for state_variant in (
        replace(state, absent=()),
        replace(state, pod_issues=(replace(pod_issue, node="gpu1"),)),
        replace(state, pod_issues=(replace(pod_issue, pod="alertmanager-x-0"),)),
        replace(state, pod_issues=()),
    ):
        assert not workloads_ready(state_variant, "monitoring").complete
    assert "not yet: alertmanager (0 of 1 pods)" in workloads_ready(
        replace(state, absent=()), "monitoring"
    ).text  # fmt: skip


def test_the_operator_s_own_word_counts_while_all_nodes_are_there() -> None:
    """gpu-operator v26.7.0 is notReady while a DaemonSet has a pod that is not available."""
    cluster_state = ClusterState(policy="notReady", absent=("gpu2",))
    assert policy_ready(cluster_state).complete
    assert not policy_ready(replace(cluster_state, absent=())).complete
    assert not policy_ready(replace(cluster_state, policy="")).complete
    assert policy_ready(ClusterState(policy="ready")).complete


LOOP = Crash(
    "kube-flannel", "kube-flannel-ds-x", "gpu1", "kube-flannel", "DaemonSet kube-flannel-ds",
    count=5, code=2, reason="Error", ended_at=900.0, pause_s=160.0,
)  # fmt: skip


@pytest.fixture
def loop(host: Host, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A crash loop of flannel's, as the cluster tells it; the commands that ran on the leader."""
    commands: list[str] = []
    issue = PodIssue(LOOP.namespace, LOOP.pod, LOOP.node, str(LOOP), LOOP)
    state = ClusterState(clock=1000.0)
    issues = {PodIssues: (issue,)}
    monkeypatch.setattr(rollout, "read", lambda fact, **arguments: issues.get(fact, state))
    log = {f"{LOOP.namespace}/{LOOP.pod}/{LOOP.container}": ["starting", "bind: in use"]}
    monkeypatch.setattr(crash_loops, "read", lambda fact, **arguments: log)
    monkeypatch.setattr(crash_loops, "run", lambda leader, command: commands.append(command))
    monkeypatch.setattr(crash_loops, "inform", lambda text: None)
    monkeypatch.setattr(crash_loops, "_restarted", set())
    return commands


def flannel_waits() -> Part:
    def look(state: ClusterState) -> Progress:
        issues = [f"{issue.pod}: {issue.reason}" for issue in state.pod_issues]
        return Progress(False, "; ".join(issues))

    return Part(look, 0, "see `journalctl -u kubelet`")


def test_a_crash_loop_tells_what_the_container_said_and_no_other_remedy(loop: list[str]) -> None:
    [message] = messages([flannel_waits()])
    assert "ended with 2 (Error): bind: in use" in message
    assert "container kube-flannel, said last:\n    starting\n    bind: in use" in message
    assert "journalctl" not in message
    assert "`kubectl -n kube-flannel logs kube-flannel-ds-x -c kube-flannel --previous`" in message


def test_a_pod_of_ours_is_started_anew_once(loop: list[str]) -> None:
    own_pods = {"kube-flannel": [""]}
    for _ in range(2):
        list(rollout.complete._inner([flannel_waits()], own_pods=own_pods))
    [command] = loop
    assert command.endswith(
        "delete pod --wait=false --ignore-not-found -n kube-flannel kube-flannel-ds-x"
    )


def test_pods_of_others_are_left_alone(loop: list[str]) -> None:
    list(rollout.complete._inner([flannel_waits()], own_pods={"monitoring": [""]}))
    assert loop == []
