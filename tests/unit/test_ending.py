"""How a run of pyinfra ends, for real: its exit code and last lines, whatever stops it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploys.engine.unanswered import cause
from tests.unit.test_run_report import DEPLOY, LOCAL, ROOT

# what stands before a run of ours, without the checks of the inventory
CONFIG = """
from pathlib import Path
from deploys.run import startup
startup._DEPLOYS = Path.cwd().resolve()
startup._before = lambda *_: None
startup.kinds.may_change = lambda: False
startup.install()
"""
PROOF = "from deploys.engine import run_ending as ending; ending.proof = 2\n"


def begin(folder: Path, last: str, deploy: str = DEPLOY) -> subprocess.Popen[str]:
    (folder / "config.py").write_text(CONFIG)
    (folder / "site.py").write_text(deploy.replace("LAST", last))
    (folder / "inventory.py").write_text(LOCAL)
    return subprocess.Popen(
        [sys.executable, "-m", "pyinfra", "inventory.py", "site.py", "-y"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(folder: Path, last: str, deploy: str = DEPLOY) -> tuple[int, str]:
    process = begin(folder, last, deploy)
    _, text = process.communicate(timeout=60)
    assert "Traceback" not in text
    return process.returncode, text


def blocked(folder: Path, kind: str) -> str:
    """Make reports/ of a kind that cannot be written to; what the line says of it."""
    if kind == "a file":
        (folder / "reports").touch()
        return "not written: reports: File exists; remedy: move away the file"
    if kind == "latest is a folder":
        (folder / "reports" / "latest").mkdir(parents=True)
        return "not written: reports/latest: Is a directory; remedy: move that folder away"
    if kind == "a folder of processes":  # nobody may make files there, not even root
        (folder / "reports").symlink_to("/proc")
        return "not written: reports/2"
    (folder / "reports").symlink_to("/sys")
    return "not written: reports/2"


KINDS = ("a file", "latest is a folder", "a folder of processes", "a folder of the kernel")


@pytest.mark.parametrize("kind", KINDS)
def test_reports_that_cannot_be_written_are_a_line_and_a_code(tmp_path: Path, kind: str) -> None:
    line = blocked(tmp_path, kind)
    code, text = run(tmp_path, "true")
    assert code == 3
    assert text.count("not written: ") == 1
    assert line in text
    assert "done in" in text.split("not written")[0], "how it ended comes first"


@pytest.mark.parametrize("kind", KINDS[:2])
def test_they_hide_no_failure(tmp_path: Path, kind: str) -> None:
    line = blocked(tmp_path, kind)
    code, text = run(tmp_path, "false")
    assert code == 1
    assert "failed on @local: Drivers | Do what false says" in text.split(line)[0]


@pytest.mark.parametrize(("last", "code"), [("true", 2), ("false", 1)])
def test_a_run_whose_proof_is_not_covered_ends_like_verify(
    tmp_path: Path, last: str, code: int
) -> None:
    exit_code, text = run(tmp_path, last, DEPLOY + PROOF)
    record = json.loads((tmp_path / "reports/latest/run.json").read_text())
    page = (tmp_path / "reports/latest/run.html").read_text()
    assert (exit_code, record["exit"]) == (code, code)
    assert ("The run is done" in page) is (last == "true")
    assert ("done in" in text) is (last == "true")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_run_in_order(tmp_path: Path, name: str) -> None:
    process = begin(tmp_path, f"touch begun; kill -{name[3:]} PID; sleep 5")
    _, text = process.communicate(timeout=60)
    number = 128 + signal.Signals[name]
    assert process.returncode == number
    assert "Traceback" not in text
    assert text.count("interrupted: ") == 1
    assert "the run was interrupted during Drivers | Do what" in text
    assert "go on with: pyinfra inventory.py site.py -y" in text
    record = json.loads((tmp_path / "reports/latest/run.json").read_text())
    assert record["exit"] == number


def test_a_second_signal_at_once_is_the_same_one(tmp_path: Path) -> None:
    """As Ctrl-C in a terminal and the command that hands it on."""
    process = begin(tmp_path, "touch begun; kill -INT PID; kill -TERM PID; sleep 5")
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "report: reports/" in text


def test_whoever_reads_the_output_may_end(tmp_path: Path) -> None:
    process = begin(tmp_path, "touch begun; sleep 1")
    assert process.stdout
    assert process.stderr
    until = time.monotonic() + 30
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert json.loads((tmp_path / "reports/latest/run.json").read_text())["exit"] == 141


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [
                "ValueError: curl: (7) Failed to connect to api port 6443",
                "Error: could not process fact: "
                "deploys.parts.cluster.secrets_fact.SecretDigests namespace=a, "
                "secret=b",
            ],
            "does not answer what is asked (SecretDigests namespace=a, secret=b): "
            "curl: (7) Failed to connect to api port 6443",
        ),
        (["Command timed out after 5s"], "does not answer: Command timed out after 5s"),
        (
            [
                "sh: 1: kubeadm: not found",
                "Error: could not load fact: deploys.parts.cluster.fact.Images",
            ],
            "does not answer what is asked (Images): sh: 1: kubeadm: not found",
        ),
        ([], "does not answer: it gave no reason"),
    ],
)
def test_what_a_host_did_not_tell_and_why(lines: list[str], expected: str) -> None:
    assert cause(lines) == expected
