"""Who may let a node in again, and when it is back after a reboot."""

from collections.abc import Callable
from typing import cast

import pytest
from pyinfra.api.host import Host

from deploys.engine import waiting
from deploys.engine.remote import RemoteError
from deploys.parts.cluster import cordon
from deploys.parts.cluster.cordon import wait_until_rejoined
from deploys.parts.cluster.kubectl import KUBECTL

Answering = Callable[..., "Leader"]


class Leader:
    """The leader as its shell answers, one answer a look; an exception is one that fails."""

    name = "cp1"
    print_prefix = "[cp1] "

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)

    def run(self, host: object, command: str, stdin: str = "") -> str:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Answering:
    monkeypatch.setattr(waiting, "POLL_S", 0)
    monkeypatch.setattr(cordon, "lacks", lambda host: [])

    def answering(*answers: str | Exception) -> Leader:
        host = Leader(*answers)
        monkeypatch.setattr(cordon, "run", host.run)
        return host

    return answering


def test_a_node_is_back_when_the_cluster_sees_it_ready_in_its_new_boot(leader: Answering) -> None:
    looks = ["old True", RemoteError("no API"), "new False", "new True"]
    host = leader(*looks)
    wait_until_rejoined(cast(Host, host), "gpu1", "new")
    assert host.answers == ["new True"]


def test_a_node_that_stays_away_is_an_error_with_a_remedy(
    leader: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cordon, "_READY_S", 0)
    for answer, reason in (
        ("old True all is well", "its kubelet has not reported since"),
        ("new False container runtime is down", "container runtime is down"),
        ("", "the cluster has no such node"),
    ):
        with pytest.raises(RemoteError, match=f"after its reboot: {reason}\n    remedy: see"):
            wait_until_rejoined(cast(Host, leader(answer)), "gpu1", "new")


class Shells:
    """What two hosts are told, and whether the node is cordoned, by whom."""

    def __init__(self, node: str = "gpu1", cordoned: bool = False, mark: bool = False) -> None:
        self.node, self.cordoned, self.mark = node, cordoned, mark
        self.commands: list[str] = []

    def run(self, host: object, command: str, stdin: str = "") -> str:
        if "unschedulable" in command:
            return f"{self.node} {'true' if self.cordoned else ''}"
        if command.startswith("test ! -e"):
            return "ours" if self.mark else ""
        self.commands.append(f"{host}: {command.replace(KUBECTL, 'kubectl')}")
        return ""


BEGIN = ["gpu1: mkdir -p $(dirname /etc/gpuboot/cordoned) && touch /etc/gpuboot/cordoned"]
BEGIN += ["cp1: kubectl cordon gpu1"]
END = ["cp1: kubectl uncordon gpu1", "gpu1: rm -f /etc/gpuboot/cordoned"]


@pytest.mark.parametrize(
    ("shells", "expected_commands"),
    [
        (Shells(), BEGIN),
        (Shells(cordoned=True, mark=True), BEGIN),  # by a run that was killed
        (Shells(cordoned=True), []),  # by somebody who has a reason
        (Shells(node=""), []),  # of no cluster yet
    ],
)
def test_only_what_gpuboot_cordoned_is_let_in_again(
    monkeypatch: pytest.MonkeyPatch, shells: Shells, expected_commands: list[str]
) -> None:
    monkeypatch.setattr(cordon, "run", shells.run)
    assert cordon.cordon(cast(Host, "cp1"), "gpu1", cast(Host, "gpu1")) is bool(expected_commands)
    assert shells.commands == expected_commands
    cordon.uncordon(cast(Host, "cp1"), "gpu1", cast(Host, "gpu1"))
    assert shells.commands == [*expected_commands, *END]
