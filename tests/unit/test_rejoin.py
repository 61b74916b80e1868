"""A node that was deleted from the cluster: its kubelet restarts, and the run waits for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import answers, changes, remote, waiting
from deploys.parts.kubeadm import join_operations as kubeadm_join
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.objects import Node

GPU1 = Node(
    name="gpu1", address="", ready=False, message="", allocatable={}, labels={},
    taints=(),
)  # fmt: skip


class Site:
    """A host, its inventory, and what the leader's cluster tells, one answer a look."""

    name = "gpu1"
    print_prefix = "[gpu1] "

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *clusters: ClusterState) -> None:
        self.clusters = list(clusters)
        self.inventory = self
        self.commands: list[str] = []
        monkeypatch.setattr(waiting, "POLL_S", 0)
        monkeypatch.setattr(remote, "read_fact", self.read)
        monkeypatch.setattr(waiting, "report_failure", self.report)

    def get_host(self, name: str) -> str:
        return name

    def read(self, target: object, fact: object, **arguments: str) -> ClusterState:
        return self.clusters.pop(0) if len(self.clusters) > 1 else self.clusters[0]

    def report(self, host: object, message: str) -> bool:
        self.commands.append(message)
        return False


def registered(site: Any) -> bool:
    return kubeadm_join._registered(cast(State, site), cast(Host, site), "cp1", "gpu1")


def test_it_waits_until_the_cluster_knows_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, ClusterState(), ClusterState(), ClusterState(nodes=(GPU1,)))
    assert registered(site)
    assert not site.commands


def test_a_kubelet_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeadm_join, "_REGISTERED_S", 0)
    site = Site(monkeypatch, ClusterState())
    assert not registered(site)
    assert "journalctl -u kubelet" in site.commands[0]


def test_its_pods_begin_anew_without_the_network_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets other addresses for its pods, and the old bridge would refuse each of them."""
    site = Site(monkeypatch, ClusterState())
    target = SimpleNamespace(state=SimpleNamespace(inventory=site))
    monkeypatch.setattr(kubeadm_join, "host", target)
    monkeypatch.setattr(kubeadm_join, "executing", lambda: False)
    monkeypatch.setattr(kubeadm_join, "warn", lambda text: None)
    monkeypatch.setattr(answers, "keeping", lambda: True)
    monkeypatch.setattr(changes, "record", lambda *items: None)
    [command, wait] = kubeadm_join._member("gpu1", "cp1")
    assert isinstance(command, StringCommand)
    parts = (
        "touch /etc/gpuboot/kubeadm-join.started", "stop kubelet", "rmp --force --all", "cni0",
        "start kubelet", "rm /etc/gpuboot/kubeadm-join.started",
    )  # fmt: skip
    places = [command.get_raw_value().index(part) for part in parts]
    assert places == sorted(places)
    assert isinstance(wait, FunctionCommand)
    assert wait.function is kubeadm_join._registered


def test_a_cluster_that_does_not_answer_has_forgotten_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch, ClusterState(error="no route"))
    assert not kubeadm_join._forgotten(cast(Host, site), "gpu1")
