"""How commands end: verdict first, then files; what cannot be written is a line and exit code 3."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.verify.prometheus import readable_sizes
from gpuboot.verify.report import new_folder, write
from tests.unit.evidence import evidence
from tests.unit.reports import report

ROOT = Path(__file__).resolve().parents[2]
runner = CliRunner()
PLAN = {"cluster": "c", "hosts": ["cp1"], "steps": [], "changes": [], "decisions": [], "ends": []}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a report, and `file`, which is in the place of a folder."""
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers(monkeypatch: pytest.MonkeyPatch, code: int, answer: str) -> None:
    monkeypatch.setattr(
        runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(code, answer, "silent host")
    )


def test_drift_is_told_where_its_file_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, 0, json.dumps(PLAN))
    (folder / "taken").mkdir()
    result = runner.invoke(app, ["drift", "i.py", "--metrics", "taken"])
    assert result.exit_code == 3
    assert result.stdout == "no drift: the host is as the settings say\n"
    assert "not written: taken: Is a directory; remedy: move that folder away" in result.stderr


def test_a_device_stays_a_device(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, 0, json.dumps(PLAN))
    result = runner.invoke(app, ["drift", "i.py", "--metrics", "/dev/full"])
    assert result.exit_code == 3
    assert "not written: /dev/full: No space left on device; remedy: free space" in result.stderr
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    ("code", "detailed", "end"), [(2, False, 2), (2, True, 1), (1, False, 1), (0, False, 2)]
)
def test_a_plan_that_nobody_can_make(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, detailed: bool, end: int
) -> None:
    answers(monkeypatch, code, "")
    options = ["--detailed-exitcode"] if detailed else []
    result = runner.invoke(app, ["plan", "i.py", *options])
    assert (result.exit_code, result.stdout) == (end, "")


def test_drift_that_nobody_can_tell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, 2, "")
    result = runner.invoke(app, ["drift", "i.py"])
    assert (result.exit_code, result.stderr) == (2, "silent host\n")


@pytest.mark.parametrize(("code", "end"), [(3, 3), (1, 1), (2, 2), (0, 2)])
def test_verify_without_a_file_ends_as_its_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, end: int
) -> None:
    answers(monkeypatch, code, "")
    assert runner.invoke(app, ["verify", "i.py"]).exit_code == end


@pytest.mark.parametrize("argument", ["reports/latest", "reports/latest/verify.json"])
def test_a_report_is_named_by_its_folder_or_by_its_file(folder: Path, argument: str) -> None:
    write(report(evidence()), new_folder(folder / "reports", "lab"))
    result = runner.invoke(app, ["report", "show", argument])
    assert result.exit_code == 0, result.output
    assert "report: reports/latest/verify.html" in result.stderr


def test_a_report_of_another_file_is_one_line(folder: Path) -> None:
    result = runner.invoke(app, ["report", "show", "file"])
    assert result.exit_code == 2
    assert "verify.json: there is no such report" in result.stderr


def gpuboot(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start the command. A shell's background job, as the tests may be one, ignores SIGINT."""
    return subprocess.Popen(
        [sys.executable, "-c", "from gpuboot.cli import app; app()", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options,
    )  # fmt: skip


def test_an_output_that_is_full() -> None:
    with open("/dev/full", "w") as full:
        process = gpuboot("docs", "settings", stdout=full)
        _, text = process.communicate(timeout=60)
    assert process.returncode == 3
    assert text == (
        "not written: standard output: No space left on device; remedy: free space or quota there "
        "(`df -h .`), then run the same command again\n"
    )


def test_an_output_that_nobody_reads() -> None:
    read, write_end = os.pipe()
    os.close(read)
    process = gpuboot("docs", "settings", stdout=write_end)
    os.close(write_end)
    _, text = process.communicate(timeout=60)
    assert (process.returncode, text) == (141, "")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_command_with_a_line(tmp_path: Path, name: str) -> None:
    """A command that waits for its own answer, not for a run of pyinfra."""
    os.mkfifo(tmp_path / "answers.json")
    process = gpuboot("cost", str(tmp_path / "answers.json"), stdout=subprocess.PIPE)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            writer = os.open(tmp_path / "answers.json", os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:  # until the command reads
            time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.Signals[name])
    _, text = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == 128 + signal.Signals[name]
    assert text == "interrupted: this command itself changed nothing; run it again\n"


@pytest.mark.parametrize(
    ("prometheus", "text"),
    [
        ("15d or 1GiB716MiB", "15d or 1.7 GiB"),
        ("15d", "15d"),
        ("42GiB", "42 GiB"),
        ("1TiB512GiB3B", "1.5 TiB"),
        ("", ""),
    ],
)
def test_sizes_of_prometheus_are_one_number(prometheus: str, text: str) -> None:
    assert readable_sizes(prometheus) == text
