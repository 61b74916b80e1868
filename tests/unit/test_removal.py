"""A node that leaves: which may go, what a person is told, and what is done where."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import commands, remote
from deploys.engine.remote import RemoteError
from deploys.parts.kubeadm import removal_operations as operations
from gpuboot.cluster import removal
from gpuboot.cluster.budgets import Budget
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.drain import NodePods, Pod
from gpuboot.cluster.volumes import NodeVolume
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.monitoring.charts.monitoring_values import remade_claims


def node(name: str, role: Any = "worker", leader: bool = False) -> Node:
    return Node(f"@ssh/{name}", name, "", role, 0, leader)


ONE_CONTROL_PLANE = (node("cp1", "control_plane", leader=True), node("gpu1"), node("gpu2"))
THREE = (ONE_CONTROL_PLANE[0], node("cp2", "control_plane"), node("cp3", "control_plane"))
BUSY = NodePods(
    exists=True,
    ready=True,
    leaving=(
        Pod(namespace="ml", name="train-0", owner="Job train", gpus=2, empty_dirs=("cache",),
            held_by=(Budget("ml", "b", 1, 1),)),
        Pod(namespace="ml", name="shell"),
    ),
    volumes=(NodeVolume("pv1", "ml/data"),),
)  # fmt: skip


def cause(problem: Any) -> str:
    return f"{problem.cause}; {problem.remedy}" if problem else ""


def test_a_node_is_found_by_both_of_its_names() -> None:
    assert (
        removal.find(ONE_CONTROL_PLANE, "gpu1")
        == removal.find(ONE_CONTROL_PLANE, "@ssh/gpu1")
        == ONE_CONTROL_PLANE[1]
    )
    assert removal.find(ONE_CONTROL_PLANE, "gpu9") is None


def test_who_leads_does_not_go() -> None:
    cp1, cp2, _ = THREE
    assert "name one: --data gpuboot_remove=NODE (gpu1, gpu2)" in cause(
        removal.refusal(ONE_CONTROL_PLANE, cp1, "")
    )
    assert "the only control plane" in cause(removal.refusal(ONE_CONTROL_PLANE, cp1, "cp1"))
    assert "deploys/reset.py" in cause(removal.refusal(ONE_CONTROL_PLANE, cp1, "@ssh/cp1"))
    assert removal.refusal(THREE, cp2, "cp1") is removal.refusal(THREE, cp1, "cp2") is None
    assert removal.refusal(ONE_CONTROL_PLANE, cp1, "gone") is None


def test_a_node_at_work_that_nobody_can_reset_does_not_go() -> None:
    node_pods = NodePods(exists=True)
    assert removal.unsafe("gpu1", True, True, BUSY) is None
    assert removal.unsafe("gpu1", True, False, node_pods) is None
    assert removal.unsafe("gpu9", False, False, node_pods) is None
    assert "cannot be reached by SSH, but is at work" in cause(
        removal.unsafe("gpu1", True, False, BUSY)
    )
    assert "is not in the inventory, but" in cause(removal.unsafe("gpu9", False, False, BUSY))
    nowhere = removal.unsafe("gpu9", False, False, NodePods())
    assert "there is no node gpu9" in cause(nowhere)
    # half removed: the cluster has forgotten it, its machine is still to be reset
    assert removal.unsafe("gpu1", True, True, NodePods()) is None


def test_the_question_says_what_runs_there() -> None:
    assert removal.question("gpu1", "prod", True, BUSY).splitlines() == [
        "this removes node gpu1 from the cluster prod: its pods end, and its machine is reset",
        "    2 pods are evicted: ml/train-0 (Job train, 2 GPUs), "
        "ml/shell (no controller: nothing makes it again)",
        "    ml/train-0 is kept by PodDisruptionBudget ml/b (1 healthy, 1 needed)",
        "    ml/shell has no controller: nothing makes it again",
        "    ml/train-0 loses what is in emptyDir cache",
        "    volume pv1 (ml/data) is on this machine alone",
        "    remedy: if that is what you want, name it: --data gpuboot_remove=gpu1",
    ]
    question_lines = removal.question("gpu1", "prod", False, NodePods(exists=True)).splitlines()
    assert question_lines[0].endswith("its pods end, its machine does not answer, and stays as is")
    assert question_lines[1] == "    no pods run there but those that every node has"


def test_claims_that_are_made_again_go_with_the_only_volume_they_had() -> None:
    full = "prometheus-kube-prometheus-stack-prometheus"
    prometheus = f"{full}-db-{full}-0"
    names = (f"monitoring/{prometheus}", f"ml/{prometheus}", "ml/data", "monitoring/other", "")
    state = NodePods(volumes=tuple(NodeVolume(f"pv{at}", name) for at, name in enumerate(names)))
    own_claims, other_claims = removal.claims(state, remade_claims(Settings()))
    assert own_claims == [names[0]]
    assert other_claims == ["ml/" + prometheus, "ml/data", "monitoring/other"]


class Site:
    """What is run where; + fails: a part of a command that fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: str = "") -> None:
        self.commands: list[str] = []
        self.fails = fails
        self.messages: list[str] = []
        self.unhealthy_members: tuple[int, ...] = ()  # members of etcd, by id
        kubeadm_state = KubeadmState(files=("kubelet.conf",))
        monkeypatch.setattr(remote, "run", self.run)
        monkeypatch.setattr(remote, "read_fact", lambda target, fact, **arguments: kubeadm_state)
        monkeypatch.setattr(operations, "report_failure", self.report)
        monkeypatch.setattr(operations, "inform", self.messages.append)
        monkeypatch.setattr(operations, "drain", self.drain)

    @property
    def inventory(self) -> Site:
        return self

    def get_host(self, name: str) -> str:
        return name

    def run(self, target: object, command: str, stdin: str = "") -> str:
        if self.fails and self.fails in command:
            raise PyinfraError("it broke")
        self.commands.append(f"{target}: {command}")
        urls = {1: "https://10.0.0.1", 255: "https://10.0.0.2", 3: "https://10.0.0.3"}
        members = [
            {"ID": member_id, "name": f"cp{min(member_id, 2)}" if member_id != 3 else "cp3",
             "peerURLs": [f"{url}:2380"], "clientURLs": [f"{url}:2379"]}
            for member_id, url in urls.items()
        ]  # fmt: skip
        if "endpoint health" in command:
            unhealthy = self.unhealthy_members
            return json.dumps(
                [
                    {"endpoint": f"{url}:2379", "health": member_id not in unhealthy}
                    for member_id, url in urls.items()
                ]
            )
        return json.dumps({"members": members}) if "member list" in command else ""

    def drain(self, leader: object, name: str, timeout_s: float) -> None:
        if self.fails == "drain":
            raise RemoteError("not drained\n    remedy: wait")
        self.commands.append(f"drained {name} in {timeout_s}")

    def report(self, host: object, message: str) -> bool:
        self.messages.append(message)
        return False


def test_each_step_is_done_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch)
    state, leader = cast(State, site), cast(Host, "cp1")
    assert operations._drained(state, leader, "gpu1", 60)
    assert operations._reset(state, leader, "@ssh/gpu1")
    assert operations._deleted(state, leader, "gpu1")
    assert site.commands[0] == "drained gpu1 in 60"
    assert "disable --now keepalived.service" in site.commands[1]
    assert site.commands[2].startswith("@ssh/gpu1: kubeadm reset --force")
    assert site.commands[3].startswith("@ssh/gpu1: sh -ec")
    assert "disable --now haproxy.service" in site.commands[4]
    assert "systemctl unmask" in site.commands[5]
    assert site.commands[6].startswith("@ssh/gpu1: rm -rf /etc/gpuboot/")
    assert site.commands[7].endswith("delete node gpu1 --ignore-not-found")
    assert len(site.commands) == 8
    assert "take it out of the inventory" in site.messages[0]


def test_claims_go_before_the_node_that_alone_had_their_volumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch)
    assert operations._claims_deleted(cast(State, site), cast(Host, "cp1"), "gpu1", ["m/a", "m/b"])
    assert [command.partition("delete")[2] for command in site.commands] == [
        f" pvc {name} --wait=false --ignore-not-found" for name in ("a", "b")
    ]
    assert "m/a, m/b: begin empty on another node" in site.messages[0]


def test_etcd_forgets_a_control_plane_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch)
    site.unhealthy_members = (255,)
    state, leader = cast(State, site), cast(Host, "cp1")
    assert operations._etcd_can_spare(state, leader, "cp2", "")
    assert operations._etcd_left(state, leader, "cp2", "")
    assert [command for command in site.commands if "member remove" in command] == [
        site.commands[-1]
    ]
    assert site.commands[-1].endswith(" member remove ff")


def test_etcd_keeps_its_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch)
    site.unhealthy_members = (3,)
    assert not operations._etcd_can_spare(cast(State, site), cast(Host, "cp1"), "cp2", "")
    [message] = site.messages
    assert "etcd would lose its majority: of the 2 members that would be left, 1 answer" in message
    assert "cp3" in message
    assert "remedy: bring back those that do not answer" in message


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        ("drain", "not drained\n    remedy: wait"),
        ("kubeadm reset", "gpu1 is drained but not reset: it broke\n    remedy: run again"),
        ("delete pvc", "volume claims of gpu1 are not deleted: it broke\n    remedy: run again"),
        ("delete node", "node gpu1 is not deleted: it broke\n    remedy: run again"),
    ],
)
def test_a_step_that_fails_ends_it(
    monkeypatch: pytest.MonkeyPatch, fails: str, message: str
) -> None:
    site = Site(monkeypatch, fails)
    state, leader = cast(State, site), cast(Host, "cp1")
    succeeded = {
        "drain": lambda: operations._drained(state, leader, "gpu1", 60),
        "kubeadm reset": lambda: operations._reset(state, leader, "gpu1"),
        "delete pvc": lambda: operations._claims_deleted(state, leader, "gpu1", ["a/b"]),
        "delete node": lambda: operations._deleted(state, leader, "gpu1"),
    }[fails]()
    assert succeeded is False
    assert site.messages == [message]
    assert not commands.messages
