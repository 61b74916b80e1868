"""One wait for all that was applied: each part has its own time and its own remedy."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand

from deploys.facts.kubeadm import PodIssues
from deploys.lib import waiting
from deploys.operations import rollout
from gpuboot.kubernetes.cluster_state import ClusterState, NodeStatus, Workload
from gpuboot.kubernetes.readiness import Part, Progress, all_of, network_ready, workloads_ready


class Host:
    """The leader: it remembers what an operation with nothing to do told."""

    print_prefix = "[cp1] "
    told = ""

    def noop(self, text: str) -> None:
        self.told = text


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    leader = Host()
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    monkeypatch.setattr(rollout, "host", leader)
    monkeypatch.setattr(rollout, "executing", lambda: True)
    monkeypatch.setattr(rollout, "read", lambda fact, **arguments: ClusterState())
    return leader


def part(name: str, looks: Iterable[bool], timeout_s: float = 60) -> Part:
    answers = iter(looks)
    return Part(
        lambda state: Progress(done := next(answers), name if done else f"{name} is missing"),
        timeout_s,
        f"look at {name}",
    )


def messages(parts: list[Part]) -> list[str]:
    commands: Any = list(rollout.complete._inner(parts))
    assert all(isinstance(item, FunctionCommand) for item in commands)
    return [item.args[0] for item in commands]


def test_it_waits_for_the_last_part(host: Host) -> None:
    assert messages([part("pods", [True, True, True]), part("GPUs", [False, False, True])]) == []
    assert host.told == "pods | GPUs"


def test_a_late_part_tells_its_own_remedy(host: Host) -> None:
    slow = part("GPUs", [False] * 9)
    assert messages([slow, part("pods", [False] * 9, timeout_s=0), part("nodes", [True] * 9)]) == [
        "not done after 0 s: pods is missing\n    remedy: look at pods; then run again"
    ]
    assert not host.told


def test_all_that_are_late_are_told(host: Host) -> None:
    [said] = messages(
        [part("pods", [False] * 9, timeout_s=0), part("GPUs", [False] * 9, timeout_s=0)]
    )
    assert "pods is missing; not done after 0 s: GPUs is missing" in said
    assert "remedy: look at pods; look at GPUs; then run again" in said


def test_the_wait_outlasts_the_latest_part(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def wait_until(host: Host, probe: Any, timeout_s: float) -> Progress:
        given.append(timeout_s)
        return all_of(probe())

    monkeypatch.setattr(rollout, "wait_until", wait_until)
    messages([part("pods", [True], timeout_s=5), part("GPUs", [True], timeout_s=900)])
    assert given[0] > 900


def test_nothing_is_waited_for_in_a_plan(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "executing", lambda: False)
    assert messages([part("pods", [])]) == []
    assert host.told == "there is nothing to wait for before the run"


def test_nodes_that_are_away_are_not_waited_for(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = tuple(
        NodeStatus(name=name, address="", kubelet="", ready=name != "gpu2", message="",
                   allocatable={}, labels={}, taints=())
        for name in ("cp1", "gpu1", "gpu2")
    )  # fmt: skip
    flannel = Workload("DaemonSet", "kube-flannel", "kube-flannel-ds", 3, 2, True, "")
    other = replace(flannel, name="of-gpu1", desired=1, ready=1)
    proxy = replace(flannel, namespace="kube-system", name="kube-proxy")
    dns = replace(proxy, kind="Deployment", name="coredns", desired=2)
    found = ClusterState(nodes=nodes, workloads=(flannel, other, proxy, dns))
    monkeypatch.setattr(rollout, "read", lambda fact, **_: () if fact is PodIssues else found)
    ready = Part(lambda state: network_ready(state, ["cp1", "gpu1"]), 0, "look")
    assert list(rollout.complete._inner([ready], lambda: ["gpu2"])) == []
    assert "2 of 2 nodes Ready" in host.told
    [late] = messages([ready])
    assert "kube-flannel-ds (2 of 3 nodes)" in late


def test_a_node_that_is_away_excuses_no_other_one() -> None:
    one = Workload("DaemonSet", "gpu", "plugin", 2, 1, True, "")
    state = ClusterState(workloads=(one,), absent=1)
    assert not workloads_ready(state, "gpu", {"plugin": 2}).done
    assert workloads_ready(state, "gpu", {"plugin": 1}).done
    assert not workloads_ready(replace(state, absent=0), "gpu", {"plugin": 1}).done
