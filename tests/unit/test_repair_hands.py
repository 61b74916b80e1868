"""What repairs do to nodes, and which of its ends is a verdict."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploys.engine.connections import unreachable
from deploys.engine.remote import RemoteError
from deploys.parts.cluster.node_drain import DrainRefusedError
from deploys.parts.reboot.reboot import RebootError, RebootRefusedError
from deploys.parts.repair import node_repair as repair
from deploys.parts.repair.node_repair import Hands
from deploys.parts.verify import operations as verify
from gpuboot.cluster.api import ClusterError
from gpuboot.config import versions
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.diagnose.site_recording import Recording
from gpuboot.repair.controller import UndecidedError
from gpuboot.repair.repair_model import Repair
from gpuboot.verify.findings import Finding

NODES = [
    Node("h0", "cp1", "10.0.0.1", "control_plane", 0, leader=True),
    Node("h1", "gpu1", "10.0.0.2", "worker", 2, leader=False),
]
SETTINGS = {"upgrade": {"drain_timeout_s": 30}, "driver": {"reboot_timeout_s": 90}}


def host(name: str) -> Any:
    return SimpleNamespace(name=name, print_prefix=f"[{name}] ", connected=True)


class Place:
    """Hands whose tools note what they are asked, and end as they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reports: Path | None = None) -> None:
        settings = {**SETTINGS, "verify": {"reports": str(reports or "reports")}}
        self.did: list[str] = []
        self.answer: str | BaseException = ""
        self.proof: Any = ([], None)
        self.hands = Hands(
            host("h0"),
            parse_settings(settings),
            versions.lock(parse_settings(settings)),
            NODES,
            lambda _: None,
        )
        monkeypatch.setattr(repair, "inventory", SimpleNamespace(get_host=host))
        monkeypatch.setattr(repair, "reach", lambda target: target.connected)
        for name in ("run", "drain", "reboot", "wait_until_rejoined"):
            monkeypatch.setattr(repair, name, self.tool(name))
        monkeypatch.setattr(verify, "judge_node", self.judge)

    def tool(self, name: str) -> Callable[..., str]:
        def record_call(target: Any, *arguments: Any) -> str:
            self.did.append(f"{name} {target.name} {' '.join(map(str, arguments))[:60]}".strip())
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

        return record_call

    def judge(self, *_: Any) -> Any:
        if isinstance(self.proof, BaseException):
            raise self.proof
        return self.proof


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(monkeypatch)


def test_pods_leave_as_for_an_upgrade(place: Place) -> None:
    assert place.hands.drain("gpu1") == ""
    assert place.did == ["drain h0 gpu1 30 True False"]
    place.answer = RemoteError("not drained: web is kept\n    remedy: see it")
    assert place.hands.drain("gpu1") == "not drained: web is kept; see it"
    place.answer = DrainRefusedError("alone has no controller")
    assert place.hands.drain("gpu1") == "alone has no controller"


def test_a_reset_is_done_failed_or_undecided(place: Place) -> None:
    place.answer = "done\tGPU-a"
    assert place.hands.reset("gpu1", ("GPU-a",)) == ""
    assert place.did[0].startswith("run h1 mkdir -p /run/gpuboot")
    place.answer = "failed\tGPU-a: is lost"
    assert place.hands.reset("gpu1", ("GPU-a",)) == "nvidia-smi does not reset GPU-a: is lost"
    for answer in (
        "busy\tGPUs are used by python (process 7)",
        "",
        RemoteError("gone"),
        EOFError(),
    ):
        place.answer = answer
        with pytest.raises(UndecidedError):
            place.hands.reset("gpu1", ("GPU-a",))


def test_a_reboot_is_waited_for_until_the_node_is_ready(place: Place) -> None:
    place.answer = "boot-2"
    assert place.hands.reboot("gpu1") == ""
    assert place.did == ["reboot h1 repair of gpu1 90", "wait_until_rejoined h0 gpu1 boot-2"]
    place.answer = RebootError("h1 did not come back within 90 s")
    assert place.hands.reboot("gpu1") == "h1 did not come back within 90 s"
    for answer in (RebootRefusedError("this runs on it"), RemoteError("not Ready")):
        place.answer = answer
        with pytest.raises(UndecidedError):
            place.hands.reboot("gpu1")


def finding(status: Any) -> Finding:
    return Finding(
        check="c",
        link="workload",
        node="gpu1",
        gpu_uuid=None,
        status=status,
        detail="d",
        remedy="r",
    )


def test_a_proof_that_nobody_can_give_is_no_verdict(place: Place) -> None:
    place.proof = ([finding("pass")], None)
    assert place.hands.prove("gpu1") == ""
    for findings in ([], [finding("pass"), finding("not_covered")]):
        place.proof = (findings, None)
        with pytest.raises(UndecidedError):
            place.hands.prove("gpu1")
    place.proof = ([finding("unknown"), finding("fail")], ("c: d", "r"))
    assert place.hands.prove("gpu1") == "c: d"
    for proof in (([finding("unknown")], ("c: d", "r")), ClusterError("silent")):
        place.proof = proof
        with pytest.raises(UndecidedError):
            place.hands.prove("gpu1")


def test_nodes_that_are_not_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UndecidedError, match="not in the inventory"):
        place.hands.prove("gpu9")
    monkeypatch.setattr(repair, "reach", lambda _: False)
    monkeypatch.setitem(unreachable, "h1", "no route")
    for job in (place.hands.prove, place.hands.reboot):
        with pytest.raises(UndecidedError, match="h1 cannot be reached: no route"):
            job("gpu1")


def test_a_person_gets_a_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = Place(monkeypatch, tmp_path)
    monkeypatch.setattr(repair, "record", lambda *_: Recording(site="site", leader="h0"))
    place.answer = "Product Name: H100"
    broken = Repair(state="failed", since=0, gpus=("GPU-a",), why="XID 79", note="did not help")
    bundle = place.hands.hand_over("gpu1", broken)
    machine, _, path = bundle.partition(":")
    assert machine
    with tarfile.open(path) as archive:
        texts = {
            name.partition("/")[2]: cast(Any, archive.extractfile(name)).read().decode()
            for name in archive.getnames()
        }
    assert "did not help" in texts["gpu1/README.txt"]
    assert "GPU-a" in texts["gpu1/repair.json"]
    assert texts["gpu1/nvidia-smi-q.txt"] == "Product Name: H100"
    assert "recording.json" in texts
    place.answer = RemoteError("no nvidia-smi")
    assert place.hands._looks("gpu1")["kernel.txt"] == "could not be read: no nvidia-smi"
    (tmp_path / "file").touch()
    closed = Place(monkeypatch, tmp_path / "file")
    with pytest.raises(UndecidedError, match="the bundle could not be written"):
        closed.hands.hand_over("gpu1", broken)
