"""The command line: exit codes, what stands on stdout, and documents that are up to date."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config.settings import Settings
from gpuboot.docs.metrics_page import metrics_markdown
from gpuboot.docs.settings_page import settings_markdown
from gpuboot.telemetry import FIELDS
from gpuboot.verify.report import new_folder, write
from tests.unit.evidence import evidence
from tests.unit.reports import broken, report

ROOT = Path(__file__).resolve().parents[2]
runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deploy to run, and pyinfra replaced by `pretend`."""
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys" / "verify.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path | None, code: int) -> list[list[str]]:
    """pyinfra that has written its report to `folder` and ends with `code`."""
    commands: list[list[str]] = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> Any:
        commands.append(command)
        if folder is not None:
            Path(env["GPUBOOT_REPORT_POINTER"]).write_text(str(folder))
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr("gpuboot.cli.runs.run_to_its_end", run)
    return commands


@pytest.mark.parametrize(("make", "code"), [(lambda: report(evidence()), 0), (broken, 1)])
def test_verify_ends_with_the_report_s_exit_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, make: Any, code: int
) -> None:
    folder = new_folder(project / "reports", "lab")
    write(make(), folder)
    commands = pretend(monkeypatch, folder, code)
    result = runner.invoke(app, ["verify", "inv.py", "--json", "--data", "a=1"])
    assert result.exit_code == code
    assert json.loads(result.stdout)["exit"] == code
    assert commands[0][-5:] == ["inv.py", "deploys/verify.py", "-y", "--data", "a=1"]


def test_verify_hands_level_and_nodes_to_the_deploy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_folder(project / "reports", "lab")
    write(report(evidence()), folder)
    commands = pretend(monkeypatch, folder, 0)
    result = runner.invoke(app, ["verify", "inv.py", "--level", "quick", "--nodes", "gpu1,gpu2"])
    assert result.exit_code == 0
    assert commands[0][-4:] == [
        "--data",
        "gpuboot_level=quick",
        "--data",
        "gpuboot_nodes=gpu1,gpu2",
    ]
    assert runner.invoke(app, ["verify", "inv.py", "--level", "thorough"]).exit_code == 2


@pytest.mark.parametrize(("code", "end"), [(1, 1), (0, 2), (-9, 2)])
def test_verify_without_a_report_never_says_proven(
    project: Path, monkeypatch: pytest.MonkeyPatch, code: int, end: int
) -> None:
    old = new_folder(project / "reports", "lab")
    write(report(evidence()), old)  # an older proof must not count
    pretend(monkeypatch, None, code)
    assert runner.invoke(app, ["verify", "inv.py"]).exit_code == end


def test_verify_elsewhere_says_where_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["verify", "inv.py"])
    assert result.exit_code == 2
    assert "remedy" in result.output


def test_a_report_is_shown_again(tmp_path: Path) -> None:
    write(broken(), new_folder(tmp_path, "lab"))
    result = runner.invoke(app, ["report", "show", str(tmp_path / "latest")])
    assert result.exit_code == 1
    assert "FAILED" in result.output
    assert runner.invoke(app, ["report", "show", str(tmp_path / "none")]).exit_code == 2


@pytest.mark.parametrize("name", ["settings", "metrics", "checks", "causes"])
def test_documents_are_up_to_date(name: str, tmp_path: Path) -> None:
    path = ROOT / "docs" / f"{name}.md"
    result = runner.invoke(app, ["docs", name, "--check", str(path)])
    assert result.exit_code == 0, result.output
    (tmp_path / "old.md").write_text("old")
    stale = runner.invoke(app, ["docs", name, "--check", str(tmp_path / "old.md")])
    assert stale.exit_code == 1
    assert f"gpuboot docs {name} " in stale.output


def test_every_setting_and_every_metric_is_documented() -> None:
    page = settings_markdown()
    for name, info in Settings.model_fields.items():
        inner = getattr(info.annotation, "model_fields", {})
        for key in inner or [name]:
            assert f"`{name}.{key}`" in page or f"`{key}`" in page, (name, key)
    assert "`key_sha256`" in page
    metrics = metrics_markdown()
    assert all(f"`{field.name}`" in metrics for field in FIELDS)


def test_versions_are_printed() -> None:
    result = runner.invoke(app, ["docs", "versions"])
    assert result.exit_code == 0
    assert "kubernetes.version" in result.output


def test_the_core_does_not_import_pyinfra() -> None:
    script = (
        "import pkgutil, sys, gpuboot\n"
        "for item in pkgutil.walk_packages(gpuboot.__path__, 'gpuboot.'): __import__(item.name)\n"
        "assert not any(name.split('.')[0] == 'pyinfra' for name in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
