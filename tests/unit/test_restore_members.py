"""A restore gives every member of etcd the same backup."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyinfra.api.command import FunctionCommand

from deploys.parts.restore.operations import restored
from deploys.parts.restore.volume_operations import BackupVolumes
from gpuboot.cluster import etcd_restore
from gpuboot.cluster.backup import Backup
from gpuboot.cluster.etcd_restore import Source

OLD = Backup("20261121T000000Z-timer", 1.0, "timer", "cp1", "v1.36.3", "etcd:1", "c1", 100, 90, 64)


@pytest.fixture(autouse=True)
def recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploys.parts.restore.operations.changes.record", lambda *items: None)


class Nodes:
    """Control planes of which each has some digests where the backup is to be."""

    def __init__(self, **digests: str) -> None:
        self.digests, self.copied = digests, list[str]()

    def get_host(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name)

    def run(self, target: SimpleNamespace, command: str, stdin: str = "") -> str:
        if "sha256sum" in command:
            return self.digests[target.name]
        if command.startswith("mv -T"):
            self.copied.append(target.name)
        return ""


def distribute(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, list[str]]:
    messages: list[str] = []

    def report(host: object, message: str) -> bool:
        messages.append(message)
        return False

    monkeypatch.setattr("deploys.parts.restore.operations.remote.run", nodes.run)
    monkeypatch.setattr("deploys.parts.restore.operations.inform", messages.append)
    monkeypatch.setattr("deploys.parts.restore.operations.report_failure", report)
    (command, *_) = restored._inner(
        Source(OLD, "cp2", f"/b/{OLD.name}"),
        [etcd_restore.Member(name, name, "p") for name in nodes.digests],
        "/b",
        BackupVolumes(None, {}, 0),
    )
    assert isinstance(command, FunctionCommand)
    succeeded = command.function(SimpleNamespace(inventory=nodes), SimpleNamespace(), *command.args)
    return succeeded, messages


def test_members_that_lack_the_backup_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(cp1="a b c", cp2="a b c", cp3="")
    assert distribute(nodes, monkeypatch) == (True, [f"copying {OLD.name} to cp3"])
    assert nodes.copied == ["cp3"]


def test_another_backup_of_the_same_name_is_not_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two nodes may take one in the same second: members of both would differ."""
    succeeded, messages = distribute(Nodes(cp1="x y z", cp2="a b c"), monkeypatch)
    assert not succeeded
    assert f"/b/{OLD.name} of cp1 is another backup of the same name" in messages[-1]
