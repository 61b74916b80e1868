"""`gpuboot remediate`: what it prints, its exit codes, and that it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploys.operations import remediate as operations
from gpuboot.cli import app, runs
from gpuboot.kubernetes.api import ClusterError
from gpuboot.kubernetes.repair.model import STOP
from tests.documents import ROOT
from tests.unit.repair_site import HEALTH, HOT, REMAP, XID_79, XID_119, Site, site

runner = CliRunner()


class Host:
    """What the operation asks of pyinfra."""

    def noop(self, text: str) -> None:
        """Nothing was changed."""

    def get_host(self, name: str) -> str:
        return name


def asked(monkeypatch: pytest.MonkeyPatch, path: Path, made: Site | str) -> str:
    """What the deploy's operation writes. + made: a site, or why it does not answer"""

    @contextmanager
    def clients(_: Any) -> Iterator[Site]:
        if isinstance(made, str):
            raise ClusterError(made)
        yield made

    monkeypatch.setattr(operations, "executing", lambda: True)
    monkeypatch.setattr(operations, "cluster_clients", clients)
    monkeypatch.setattr(operations, "inventory", Host())
    monkeypatch.setattr(operations, "host", Host())
    settings = (Site() if isinstance(made, str) else made).settings
    commands = operations.judged._inner(settings, "cp1", str(path / "answer"))
    assert list(commands) == []
    return (path / "answer").read_text()


def told(
    monkeypatch: pytest.MonkeyPatch, path: Path, made: Site | str, *options: str
) -> tuple[int, str]:
    """Exit code and output of the command."""
    answer = asked(monkeypatch, path, made)
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.Ended(0, answer, ""))
    done = runner.invoke(app, ["remediate", "inventories/x.py", *options])
    return done.exit_code, done.output


def some() -> Site:
    """A cluster with one of each: to repair, of one sign alone, hot, opted out, a person's."""
    made = site(6)
    made.fault("gpu1", XID_119, HEALTH).fault("gpu2", XID_119).fault("gpu3", HOT)
    made.fault("gpu4", XID_79).fault("gpu5", REMAP)
    made.nodes["gpu4"]["metadata"]["labels"]["gpuboot.io/remediate"] = "off"
    made.cordon("gpu5")
    return made


def test_what_would_be_done_and_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = some()
    code, said = told(monkeypatch, tmp_path, made)
    assert code == 1
    assert made.writes == []
    page = (ROOT / "docs" / "remediate.md").read_text()
    assert said.strip() in page, said


def test_for_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, said = told(monkeypatch, tmp_path, some(), "--json")
    found = json.loads(said)
    assert code == 1
    nodes = {one["node"]: one for one in found["nodes"]}
    assert set(nodes) == {"gpu1", "gpu2", "gpu4", "gpu5"}
    assert nodes["gpu1"]["action"] == "reset"
    assert nodes["gpu1"]["would"][0] == "wait 120 s, whether it passes"
    assert nodes["gpu1"]["gpus"] == ["GPU-gpu1"]
    assert [one for one in nodes if nodes[one]["would"]] == ["gpu1"]
    assert found["ignored"][0]["node"] == "gpu3"
    page = (ROOT / "docs" / "remediate.md").read_text()
    assert all(f"`{key}`" in page for key in {*found, *nodes["gpu1"]})


def test_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = site(8).fault("gpu1", XID_79).fault("gpu2", XID_79)
    code, said = told(monkeypatch, tmp_path, made)
    assert code == 1
    assert "gpu1: would be repaired: reboot" in said
    assert "gpu2: nothing is done" in said
    assert "1 of 1 nodes that may be out of service are: gpu1" in said


def test_nodes_under_repair_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = site().fault("gpu3", XID_79, cure="reboot")
    made.blocked = {"gpu3"}
    made.runs(3)
    made.fault("gpu1", XID_119)
    _, said = told(monkeypatch, tmp_path, made)
    assert said.index("gpu3 (draining): nothing is done") < said.index("gpu1")
    assert "it is tried again at" in said
    made.clock += 600
    _, said = told(monkeypatch, tmp_path, made)
    assert "gpu3 (draining): would be repaired: reboot" in said
    assert "reboot the node" in said
    made.fault("gpu3", REMAP).blocked = set()
    made.runs()
    _, said = told(monkeypatch, tmp_path, made)
    assert "gpu3 (repairing): nothing is done" in said
    assert "a person has to repair it" in said


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({}, 0, "4 GPU nodes, none asks for a repair"),
        ({"scrape_age": 400.0}, 2, "could not tell: Prometheus' newest sample is 400 s old"),
        ({"maps": {STOP: {}}}, 0, "stopped: the ConfigMap kube-system/gpuboot-remediate-stop"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: dict[str, Any], code: int, said: str
) -> None:
    made = site()
    for key, value in change.items():
        setattr(made, key, value)
    found, output = told(monkeypatch, tmp_path, made)
    assert found == code
    assert said in output


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, said = told(monkeypatch, tmp_path, "connection refused")
    assert code == 2
    assert "could not be asked: connection refused" in said
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.Ended(1, "", "no inventory"))
    done = runner.invoke(app, ["remediate", "inventories/x.py"])
    assert done.exit_code == 2
    assert "no inventory" in done.output


def test_only_in_the_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["remediate", "i.py"])
    assert done.exit_code == 2
    assert "deploys/remediate.py is not here" in done.stderr
