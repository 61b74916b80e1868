"""`gpuboot remediate`: what it prints, its exit codes, and that it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploys.parts.repair import operations as operations
from gpuboot.cli import app, runs
from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.repair_keys import STOP
from tests.documents import ROOT
from tests.unit.repair_site import HEALTH, HOT, REMAP, XID_79, XID_119, Site, site

runner = CliRunner()


class Host:
    """What the operation asks of pyinfra."""

    def noop(self, text: str) -> None:
        """Nothing was changed."""

    def get_host(self, name: str) -> str:
        return name


def operation_answer(monkeypatch: pytest.MonkeyPatch, path: Path, fake_site: Site | str) -> str:
    """What the deploy's operation writes. + fake_site: a site, or why it does not answer"""

    @contextmanager
    def clients(_: Any) -> Iterator[Site]:
        if isinstance(fake_site, str):
            raise ClusterError(fake_site)
        yield fake_site

    monkeypatch.setattr(operations, "executing", lambda: True)
    monkeypatch.setattr(operations, "cluster_clients", clients)
    monkeypatch.setattr(operations, "inventory", Host())
    monkeypatch.setattr(operations, "host", Host())
    settings = (Site() if isinstance(fake_site, str) else fake_site).settings
    commands = operations.assessed._inner(settings, "cp1", str(path / "answer"))
    assert list(commands) == []
    return (path / "answer").read_text()


def run_remediate(
    monkeypatch: pytest.MonkeyPatch, path: Path, fake_site: Site | str, *options: str
) -> tuple[int, str]:
    """Exit code and output of the command."""
    answer = operation_answer(monkeypatch, path, fake_site)
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(0, answer, ""))
    result = runner.invoke(app, ["remediate", "inventories/x.py", *options])
    return result.exit_code, result.output


def some() -> Site:
    """A cluster with one of each: to repair, of one sign alone, hot, opted out, a person's."""
    fake_site = site(6)
    fake_site.fault("gpu1", XID_119, HEALTH).fault("gpu2", XID_119).fault("gpu3", HOT)
    fake_site.fault("gpu4", XID_79).fault("gpu5", REMAP)
    fake_site.nodes["gpu4"]["metadata"]["labels"]["gpuboot.io/remediate"] = "off"
    fake_site.cordon("gpu5")
    return fake_site


def test_what_would_be_done_and_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_site = some()
    code, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert code == 1
    assert fake_site.writes == []
    page = (ROOT / "docs" / "remediate.md").read_text()
    assert output.strip() in page, output


def test_for_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, output = run_remediate(monkeypatch, tmp_path, some(), "--json")
    document = json.loads(output)
    assert code == 1
    nodes = {node["node"]: node for node in document["nodes"]}
    assert set(nodes) == {"gpu1", "gpu2", "gpu4", "gpu5"}
    assert nodes["gpu1"]["action"] == "reset"
    assert nodes["gpu1"]["would"][0] == "wait 120 s, whether it passes"
    assert nodes["gpu1"]["gpus"] == ["GPU-gpu1"]
    assert [node for node in nodes if nodes[node]["would"]] == ["gpu1"]
    assert document["ignored"][0]["node"] == "gpu3"
    page = (ROOT / "docs" / "remediate.md").read_text()
    assert all(f"`{key}`" in page for key in {*document, *nodes["gpu1"]})


def test_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_site = site(8).fault("gpu1", XID_79).fault("gpu2", XID_79)
    code, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert code == 1
    assert "gpu1: would be repaired: reboot" in output
    assert "gpu2: nothing is done" in output
    assert "1 of 1 nodes that may be out of service are: gpu1" in output


def test_nodes_under_repair_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_site = site().fault("gpu3", XID_79, cure="reboot")
    fake_site.blocked = {"gpu3"}
    fake_site.runs(3)
    fake_site.fault("gpu1", XID_119)
    _, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert output.index("gpu3 (draining): nothing is done") < output.index("gpu1")
    assert "it is tried again at" in output
    fake_site.clock += 600
    _, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert "gpu3 (draining): would be repaired: reboot" in output
    assert "reboot the node" in output
    fake_site.fault("gpu3", REMAP).blocked = set()
    fake_site.runs()
    _, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert "gpu3 (repairing): nothing is done" in output
    assert "a person has to repair it" in output


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        ({}, 0, "4 GPU nodes, none asks for a repair"),
        ({"scrape_age": 400.0}, 2, "could not tell: Prometheus' newest sample is 400 s old"),
        ({"maps": {STOP: {}}}, 0, "stopped: the ConfigMap kube-system/gpuboot-remediate-stop"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    change: dict[str, Any],
    code: int,
    expected: str,
) -> None:
    fake_site = site()
    for key, value in change.items():
        setattr(fake_site, key, value)
    exit_code, output = run_remediate(monkeypatch, tmp_path, fake_site)
    assert exit_code == code
    assert expected in output


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, output = run_remediate(monkeypatch, tmp_path, "connection refused")
    assert code == 2
    assert "could not be asked: connection refused" in output
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(1, "", "no inventory"))
    result = runner.invoke(app, ["remediate", "inventories/x.py"])
    assert result.exit_code == 2
    assert "no inventory" in result.output


def test_only_in_the_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["remediate", "i.py"])
    assert result.exit_code == 2
    assert "deploys/remediate.py is not here" in result.stderr
