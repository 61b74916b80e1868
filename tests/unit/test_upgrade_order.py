"""Who is upgraded when, how many at a time, and what becomes of the pods."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploys.engine import commands, remote, waiting
from deploys.parts.cluster import api_silence
from deploys.parts.cluster.node_drain import Moving
from deploys.parts.etcd import members as etcd
from deploys.parts.kubeadm import kubelet_upgrade
from deploys.parts.kubeadm import upgrade_operations as kubeadm_upgrade
from deploys.parts.kubeadm.kubelet_upgrade import KubeletPart
from deploys.parts.nodes.node_upgrade_costs import move_of_pods
from deploys.phases import kubernetes
from deploys.run.context import Context
from gpuboot.cluster import version_skew
from gpuboot.cluster.cluster_state import ClusterState, KubeadmState, parse_etcd_health
from gpuboot.cluster.node_upgrade import Difference
from gpuboot.cluster.readiness import Progress
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.config.settings.upgrade import batch_size

HALF = {"cp1": "1.36.3", "cp2": "1.35.4"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ClusterState(recorded="1.36.3", server="1.36.3"), ""),
        # behind a load balancer another control plane may have answered, which is not its turn yet
        (ClusterState(recorded="1.36.3", server="1.35.4", api_servers=HALF), ""),
        (ClusterState(recorded="1.36.2", server="1.36.2"), "it is of 1.36.2"),
        (ClusterState(error="connection refused"), "connection refused"),
    ],
)
def test_the_leader_goes_first(
    monkeypatch: pytest.MonkeyPatch, state: ClusterState, expected: str
) -> None:
    inventory = SimpleNamespace(get_host=lambda name: SimpleNamespace(name=name))
    host = SimpleNamespace(state=SimpleNamespace(inventory=inventory, is_executing=True))
    monkeypatch.setattr(kubeadm_upgrade, "host", host)
    monkeypatch.setattr(kubeadm_upgrade, "_API_S", 0)
    monkeypatch.setattr(commands, "current_host", host)
    monkeypatch.setattr(remote, "read_fact", lambda target, fact, **keywords: state)
    monkeypatch.setattr(api_silence, "lacks", lambda target: [("kubelet", "it is failed")])
    refusal = kubeadm_upgrade.too_early("cp1", "1.36.3", worker=False)
    assert (refusal is not None) is bool(expected)
    if refusal:
        cause, remedy = refusal
        assert cause.startswith("not upgraded to Kubernetes 1.36.3 before the control plane is: ")
        assert expected in cause
        assert remedy


def test_workers_come_after_all_control_planes() -> None:
    """A kubelet may reach any API server behind the endpoint, and must be newer than none."""
    half = ClusterState(recorded="1.36.3", server="1.36.3", api_servers=HALF)
    assert version_skew.too_early(half, "1.36.3", worker=False) == ""
    assert version_skew.too_early(half, "1.36.3", worker=True) == "the API server of cp2 is 1.35.4"
    upgraded_state = replace(half, api_servers=dict.fromkeys(HALF, "1.36.3"))
    assert version_skew.too_early(upgraded_state, "1.36.3", worker=True) == ""


@pytest.mark.parametrize(
    ("setting", "nodes", "expected"),
    [(1, 0, 1), (1, 40, 1), (3, 40, 3), ("10%", 40, 4), ("10%", 9, 1), ("0%", 9, 1), ("25%", 7, 1)],
)
def test_how_many_nodes_may_be_away(setting: int | str, nodes: int, expected: int) -> None:
    assert batch_size(setting, nodes) == expected


@pytest.mark.parametrize(
    ("drain", "running", "moved"),
    [
        ("when-needed", "1.35.4", True),
        ("when-needed", "1.36.2", False),
        ("when-needed", "", False),
        ("always", "1.36.2", True),
        ("never", "1.35.4", False),
    ],
)
def test_when_pods_are_moved(
    monkeypatch: pytest.MonkeyPatch, drain: Any, running: str, moved: bool
) -> None:
    monkeypatch.setattr(kubelet_upgrade, "executing", lambda: False)
    part = KubeletPart("1.36.3", {"kubelet": "1.36.3-*"})
    state = KubeadmState(packages={"kubelet": running} if running else {})
    minor = kubelet_upgrade.is_minor(part, "gpu1", "cp1", state)
    is_moved = move_of_pods(Moving(drain, timeout_s=60), Difference(minor=minor))
    expected = {"timeout_s": 60, "empty_dirs": True, "unmanaged": False}
    assert is_moved == (expected if moved else {})


@pytest.mark.parametrize(
    ("started", "control_plane", "expected"),
    [
        ((), False, False),
        (("kubelet",), False, True),
        (("kubelet",), True, True),
        # that of a control plane says that kubeadm has not ended; an earlier version's, all of it
        (("upgrade",), True, False),
        (("upgrade",), False, True),
    ],
)
def test_a_kubelet_whose_upgrade_began_is_upgraded(
    started: tuple[str, ...], control_plane: bool, expected: bool
) -> None:
    part = KubeletPart("1.36.3", {"kubelet": "1.36.3-*"}, control_plane)
    assert kubelet_upgrade.is_unfinished(part, KubeadmState(started=started)) is expected


def test_kubeadm_of_a_control_plane_is_no_part_of_its_kubelet() -> None:
    packages = {"kubelet": "1.36.3-*", "kubeadm": "1.36.3-*"}
    state = KubeadmState(packages={"kubelet": "1.36.3-1.1", "kubeadm": "1.35.4-1.1"})
    assert kubelet_upgrade.missing(KubeletPart("1.36.3", packages, True), state) == {}
    assert kubelet_upgrade.missing(KubeletPart("1.36.3", packages), state) == {
        "kubeadm": "1.36.3-*"
    }


def test_settings_say_what_may_be_ended() -> None:
    data = {"drain": "always", "drain_empty_dirs": False, "drain_unmanaged": True}
    settings = parse_settings({"upgrade": data | {"max_unavailable": "10%"}})
    leader = Node("cp1", "cp1", "", "control_plane", 0, leader=True)
    workers = tuple(Node(name, name, "", "worker", 2, leader=False) for name in ("gpu1", "gpu2"))
    every = Context(settings, cast(Any, None), (leader, *workers), workers[0], {})
    moving = kubernetes.moving(every)
    assert moving == Moving("always", 600, empty_dirs=False, unmanaged=True)
    assert kubernetes.moving(replace(every, node=leader)).drain == "always"


def test_pods_that_could_go_nowhere_stay() -> None:
    """The control plane takes none while there is a worker."""
    settings = parse_settings({})
    leader = Node("cp1", "cp1", "", "control_plane", 0, leader=True)
    worker = Node("gpu1", "gpu1", "", "worker", 2, leader=False)
    leader_only = Context(settings, cast(Any, None), (leader,), leader, {})
    assert kubernetes.moving(leader_only).drain == "never"
    one_worker = Context(settings, cast(Any, None), (leader, worker), worker, {})
    assert kubernetes.moving(one_worker).drain == "never"
    assert kubernetes.moving(replace(one_worker, node=leader)).drain == "when-needed"


@dataclass
class Meta:
    """How an operation has ended on a host; None: it has not."""

    succeeded: bool | None

    def is_complete(self) -> bool:
        return self.succeeded is not None

    def did_succeed(self) -> bool:
        return bool(self.succeeded)


def test_a_failure_ends_the_upgrade_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"gpu1": True, "gpu2": False, "gpu3": None, "gpu4": None}
    hosts = {name: SimpleNamespace(name=name, executing_op_hash="op") for name in names}
    operations = {name: SimpleNamespace(operation_meta=Meta(item)) for name, item in names.items()}

    class Operations:
        def __getitem__(self, host: Any) -> dict[str, Any]:
            return {"op": operations[host.name]} if host.name != "gpu3" else {}

    state = SimpleNamespace(is_executing=True, inventory=hosts.values(), ops=Operations())
    for host in hosts.values():
        host.state = state
    hosts["gpu4"].state = state
    monkeypatch.setattr(kubeadm_upgrade, "host", hosts["gpu4"])
    stop_reason = kubeadm_upgrade._stopped()
    assert stop_reason is not None
    assert stop_reason[0] == "not upgraded, because gpu2 failed: the other nodes stay as they are"
    operations["gpu2"].operation_meta = Meta(True)
    assert kubeadm_upgrade._stopped() is None


@pytest.mark.parametrize(
    ("output", "unhealthy"),
    [
        ('{"health":"true","reason":""}', ""),
        ('{"health":"false","reason":"RAFT NO LEADER"}', "RAFT NO LEADER"),
        ('{"health":"false"}', "not healthy"),
        ("curl: (7) Failed to connect", "curl: (7) Failed to connect"),
        ("", "no answer"),
    ],
)
def test_what_etcd_says_of_itself(output: str, unhealthy: str) -> None:
    assert parse_etcd_health([f"said\t{output}", "end\tok"]) == unhealthy


def test_an_api_server_that_starts_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer kubelet has just made the static pods of the leader anew."""
    answers = [ClusterState(error="curl: (18) HTTP/2 stream"), ClusterState(recorded="1.36.3")]
    inventory = SimpleNamespace(get_host=lambda name: SimpleNamespace(name=name))
    state = SimpleNamespace(inventory=inventory, is_executing=True)
    host = SimpleNamespace(state=state, print_prefix="")
    monkeypatch.setattr(kubeadm_upgrade, "host", host)
    monkeypatch.setattr(commands, "current_host", host)
    monkeypatch.setattr(waiting, "POLL_S", 0)
    monkeypatch.setattr(remote, "read_fact", lambda target, fact, **keywords: answers.pop(0))
    monkeypatch.setattr(api_silence, "lacks", lambda target: [])
    assert kubeadm_upgrade.too_early("cp1", "1.36.3", worker=False) is None
    assert answers == []


def test_etcd_has_to_be_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that goes away again within that time is waited for once more."""
    answers, progress = ["", "refused", "", ""], list[Progress]()
    member = SimpleNamespace(name="cp1", print_prefix="")
    state = SimpleNamespace(inventory=SimpleNamespace(get_host=lambda name: member))
    clock = iter([0.0, 10.0, 30.0])

    def wait(host: Any, probe: Any, timeout_s: float) -> Progress:
        progress.extend(probe() for _ in range(4))
        return progress[-1]

    monkeypatch.setattr(remote, "read_fact", lambda target, fact, **keywords: answers.pop(0))
    monkeypatch.setattr(waiting, "wait_until", wait)
    monkeypatch.setattr(etcd, "lacks", lambda target: [("etcd", "it has ended: bad flag")])
    monkeypatch.setattr(etcd, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert etcd.wait_for_etcd(cast(Any, state), cast(Any, member), ["cp1"], 15)
    assert [item.complete for item in progress] == [False, False, False, True]
    assert progress[1].text == (
        "etcd is healthy on 0 of 1 control planes; not on cp1 (refused); "
        "etcd on cp1: it has ended: bad flag"
    )
    assert [item.subject for item in progress[1].stuck] == ["etcd on cp1"]
