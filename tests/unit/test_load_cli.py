"""`gpuboot load`: what it asks for, what it tells, and how it ends what it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app, runs
from gpuboot.verify.load.load_answers import GpuLoad, Outcome

runner = CliRunner()
TESTER = "dcgmproftester13"
FINISHED = GpuLoad(node="gpu1", uuid="GPU-1", program=TESTER, said="2800.0 GB/s", ended=True)
FAILED = GpuLoad(node="gpu1", uuid="GPU-2", program=TESTER, ended=True, error="wrong result")


def run_load(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, *words: str
) -> tuple[int, str, dict[str, Any]]:
    """Exit code, output, and what the deploy was asked for."""
    requested: dict[str, Any] = {}

    def pyinfra(
        inventory: str, deploy: str, options: list[str], variables: dict[str, str], **keywords: Any
    ) -> runs.PyinfraResult:
        requested.update(json.loads(variables["GPUBOOT_LOAD"]), **keywords, deploy=deploy)
        assert int(variables["GPUBOOT_PARENT"]) == os.getpid()
        return runs.PyinfraResult(0, outcome.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    result = runner.invoke(app, ["load", "inventories/prod.py", "--kind", "memory", *words])
    return result.exit_code, result.output, requested


@pytest.mark.parametrize(
    ("outcome", "code", "expected"),
    [
        ({"gpus": (FINISHED,)}, 0, f"gpu1 GPU-1: 2800.0 GB/s, by {TESTER}"),
        ({"gpus": (FINISHED, FAILED)}, 1, "gpu1 GPU-2: failed: wrong result"),
        ({"left": {"gpu1": "the node is cordoned"}}, 2, "gpu1: not loaded: the node is cordoned"),
        ({"error": "there is no cluster to ask"}, 2, "there is no cluster to ask"),
        ({"gpus": (FINISHED,), "stopped": True}, 130, "ended before its time"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, outcome: dict[str, Any], code: int, expected: str
) -> None:
    load_outcome = Outcome(kind="memory", asked_s=60, **outcome)
    exit_code, output, requested = run_load(monkeypatch, load_outcome)
    assert exit_code == code
    assert expected in output
    assert requested["tidies"]
    assert requested["deploy"] == "deploys/load.py"


def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(kind="memory", asked_s=60, gpus=(FINISHED,))
    words = ("--nodes", "gpu1,gpu2", "--seconds", "900", "--gpus", "2", "--json")
    _, output, requested = run_load(monkeypatch, outcome, *words)
    selected = {name: requested[name] for name in ("kind", "nodes", "seconds", "gpus", "uuid")}
    assert selected == {
        "kind": "memory", "nodes": ["gpu1", "gpu2"], "seconds": 900, "gpus": 2, "uuid": ""
    }  # fmt: skip
    assert json.loads(output[output.index("{") :])["gpus"][0]["said"] == "2800.0 GB/s"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--seconds", "3601"), "3600"),
        (("--seconds", "5"), "10"),
        (("--kind", "nothing"), "nothing"),
        (("--gpu", "GPU-1", "--gpus", "2"), "either --gpu or --gpus"),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: str
) -> None:
    code, output, requested = run_load(monkeypatch, Outcome(kind="memory", asked_s=60), *words)
    assert code == 2
    assert expected in output
    assert requested == {}


def test_a_run_that_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.PyinfraResult(1, "", "no inventory"))
    result = runner.invoke(app, ["load", "inventories/x.py", "--kind", "compute"])
    assert result.exit_code == 2
    assert "no inventory" in result.output


# stands in the place of pyinfra: removes what it made when it is told to end
TIDY = """\
import os, pathlib, signal, sys, time
def end(*_):
    time.sleep(1)
    pathlib.Path("tidied").write_text(os.environ["GPUBOOT_ANSWER"])
    pathlib.Path(os.environ["GPUBOOT_ANSWER"]).write_text("told")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path("begun").touch()
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_handed_on_and_the_end_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploy.py").touch()
    (tmp_path / "pyinfra.py").write_text(TIDY)  # what `python -m pyinfra` finds first

    def end() -> None:
        until = time.monotonic() + 20
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.Signals[name])

    before = signal.getsignal(signal.Signals[name])
    threading.Thread(target=end).start()
    result = runs.pyinfra("i.py", "deploy.py", capture_output=True, tidies=True)
    assert (result.code, result.answer) == (128 + signal.Signals[name], "told")
    assert (tmp_path / "tidied").exists()
    assert signal.getsignal(signal.Signals[name]) is before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_other_commands_end_by_the_signal_s_code_and_wait_as_well(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "deploy.py").touch()
    (tmp_path / "pyinfra.py").write_text(TIDY)
    # what a script runs in the background ignores SIGINT
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import sys, typer\nfrom gpuboot.cli import runs\n"
    code += 'try: runs.pyinfra("i.py", "deploy.py", capture_output=True)\n'
    code += "except typer.Exit as end: sys.exit(end.exit_code)\n"
    command = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    until = time.monotonic() + 20
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.1)
    command.send_signal(signal.Signals[name])
    _, output = command.communicate(timeout=20)
    assert command.returncode == 128 + signal.Signals[name]
    assert output.decode().splitlines() == ["interrupted: run it again"]
    assert (tmp_path / "tidied").exists()
