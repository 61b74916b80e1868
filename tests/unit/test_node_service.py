"""Who keeps pods off a node, who lets them in again, and what stands on it meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import commands
from deploys.engine.remote import RemoteError
from deploys.parts.cluster import cordon
from deploys.parts.cluster.kubectl import KUBECTL
from deploys.parts.cluster.node_drain import DrainRefusedError
from deploys.parts.nodes import node_service


class Shells:
    """What leader and node are told, and what they answer. + mark: gpuboot's on the node"""

    def __init__(self, mark: bool = True, taints: str = "", silent: bool = False) -> None:
        self.mark, self.taints, self.silent = mark, taints, silent
        self.commands: list[str] = []

    def run(self, host: Any, command: str, stdin: str = "") -> str:
        if "readyz" in command:
            if self.silent:
                raise RemoteError("refused")
            return "ok"
        if "spec.taints" in command:
            return self.taints
        if "unschedulable" in command:
            return "gpu1 true" if self.mark else "gpu1"
        if command.startswith("test ! -e"):
            return "yes" if self.mark else ""
        self.commands.append(f"{host.name}: {command.replace(KUBECTL, 'kubectl')}")
        return ""


@pytest.fixture
def shells(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make_shells(**options: Any) -> Shells:
        fake_shells = Shells(**options)
        monkeypatch.setattr(cordon, "run", fake_shells.run)
        monkeypatch.setattr(node_service, "run", fake_shells.run)
        monkeypatch.setattr(node_service, "_API_S", 0)
        lacks = [("kube-apiserver", "its manifest does not exist")] if fake_shells.silent else []
        monkeypatch.setattr(node_service, "lacks", lambda leader: lacks)
        return fake_shells

    return make_shells


HOST = cast(
    Host,
    SimpleNamespace(
        name="gpu1",
        print_prefix="[gpu1] ",
        executing_op_hash="op",
        log_styled=lambda *_, **__: None,
    ),
)
LEADER = SimpleNamespace(name="cp1", print_prefix="[cp1] ")
STATE = cast(State, SimpleNamespace(inventory=SimpleNamespace(get_host=lambda name: LEADER)))
TAINTED = ["kubectl taint node gpu1 gpuboot.io/upgrade-",
           "kubectl annotate node gpu1 gpuboot.io/upgrade-"]  # fmt: skip


def test_a_node_that_was_not_proven_is_taken_up_again(shells: Any) -> None:
    """Pods of DaemonSets, the device plugin's among them, may come back before the proof."""
    fake_shells = shells(taints="other/key gpuboot.io/upgrade")
    assert node_service.take_out(STATE, HOST, "gpu1", "cp1", False, {})
    assert fake_shells.commands == [
        "gpu1: mkdir -p $(dirname /etc/gpuboot/cordoned) && touch /etc/gpuboot/cordoned",
        "cp1: kubectl cordon gpu1",
        *(f"cp1: {line}" for line in TAINTED),
    ]


def test_a_proven_node_is_let_in_and_a_persons_cordon_stays(shells: Any) -> None:
    own_shells = shells(taints="gpuboot.io/upgrade")
    assert node_service.let_in(STATE, HOST, "gpu1", "cp1")
    assert own_shells.commands == [
        *(f"cp1: {line}" for line in TAINTED),
        "cp1: kubectl uncordon gpu1",
        "gpu1: rm -f /etc/gpuboot/cordoned",
        f"gpu1: rm -f {node_service.STARTED_MARK}",
    ]
    other_shells = shells(mark=False)
    assert node_service.let_in(STATE, HOST, "gpu1", "cp1")
    assert other_shells.commands == [f"gpu1: rm -f {node_service.STARTED_MARK}"]


def test_pods_that_may_not_be_ended_keep_their_node_in_service(
    shells: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise DrainRefusedError("node gpu1 is not drained: ml/a has data")

    fake_shells = shells()
    monkeypatch.setattr(node_service, "drain", refuse)
    monkeypatch.setattr(commands, "messages", {})
    assert not node_service.take_out(STATE, HOST, "gpu1", "cp1", False, {"timeout_s": 1})
    assert fake_shells.commands[-3:] == [
        "cp1: kubectl uncordon gpu1",
        "gpu1: rm -f /etc/gpuboot/cordoned",
        f"gpu1: rm -f {node_service.STARTED_MARK}",
    ]
    assert "ml/a has data" in commands.messages["gpu1", "op"]


@pytest.mark.parametrize("without_api", [False, True])
def test_a_control_plane_is_repaired_without_its_api(
    shells: Any, without_api: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_shells = shells(silent=True)
    monkeypatch.setattr(commands, "messages", {})
    assert node_service.take_out(STATE, HOST, "gpu1", "cp1", without_api, {}) is without_api
    assert fake_shells.commands == []
    message = commands.messages.get(("gpu1", "op"), "")
    assert ("the API server does not answer" in message) is not without_api


def test_the_reason_stands_on_the_node(shells: Any) -> None:
    fake_shells = shells()
    node_service.keep_out(cast(Host, LEADER), "gpu1", "driver 1 → 2: it's\nwrong")
    assert fake_shells.commands == [
        "cp1: kubectl annotate --overwrite node gpu1 "
        "'gpuboot.io/upgrade=driver 1 → 2: it'\"'\"'s wrong'",
        "cp1: kubectl taint --overwrite node gpu1 gpuboot.io/upgrade=failed:NoSchedule",
    ]


def test_what_the_proof_says_comes_with_the_ways_on_and_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "messages", {})
    assert node_service.proven(STATE, HOST, "gpu1", lambda gpus: None, (), "")
    broken = ("vectorAdd by UUID GPU-1: it failed", "see the pod's log")
    assert not node_service.proven(STATE, HOST, "gpu1", lambda gpus: broken, (), "driver 1")
    assert commands.messages["gpu1", "op"] == (
        "gpu1 is not proven after its upgrade: vectorAdd by UUID GPU-1: it failed\n"
        "    remedy: see the pod's log; then run again to go on. To go back, ask for driver 1 and "
        "run"
    )
