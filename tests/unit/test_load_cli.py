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
from gpuboot.verify.load.answers import GpuLoad, Outcome

runner = CliRunner()
DONE = GpuLoad(
    node="gpu1", uuid="GPU-1", program="gpuboot", launches=9, seconds=60.0, per_second=2.8e12,
    unit="B/s", ended=True,
)  # fmt: skip
FAILED = GpuLoad(node="gpu1", uuid="GPU-2", program="gpuboot", ended=True, error="wrong result")


def told(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, *words: str
) -> tuple[int, str, dict[str, Any]]:
    """Exit code, output, and what the deploy was asked for."""
    asked: dict[str, Any] = {}

    def pyinfra(
        inventory: str, deploy: str, more: list[str], variables: dict[str, str], **how: Any
    ) -> runs.Ended:
        asked.update(json.loads(variables["GPUBOOT_LOAD"]), **how, deploy=deploy)
        assert int(variables["GPUBOOT_PARENT"]) == os.getpid()
        return runs.Ended(0, outcome.to_json(), "")

    monkeypatch.setattr(runs, "pyinfra", pyinfra)
    done = runner.invoke(app, ["load", "inventories/prod.py", "--kind", "memory", *words])
    return done.exit_code, done.output, asked


@pytest.mark.parametrize(
    ("outcome", "code", "says"),
    [
        ({"gpus": (DONE,)}, 0, "gpu1 GPU-1: 2.8 TB/s, 9 launches in 60 s, by gpuboot"),
        ({"gpus": (DONE, FAILED)}, 1, "gpu1 GPU-2: failed: wrong result"),
        ({"left": {"gpu1": "the node is cordoned"}}, 2, "gpu1: not loaded: the node is cordoned"),
        ({"error": "there is no cluster to ask"}, 2, "there is no cluster to ask"),
        ({"gpus": (DONE,), "stopped": True}, 130, "ended before its time"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch, outcome: dict[str, Any], code: int, says: str
) -> None:
    found = Outcome(kind="memory", asked_s=60, **outcome)
    ended, output, asked = told(monkeypatch, found)
    assert ended == code
    assert says in output
    assert asked["tidies"]
    assert asked["deploy"] == "deploys/load.py"


def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(kind="memory", asked_s=60, gpus=(DONE,))
    words = ("--nodes", "gpu1,gpu2", "--seconds", "900", "--gpus", "2", "--json")
    _, output, asked = told(monkeypatch, outcome, *words)
    wanted = {name: asked[name] for name in ("kind", "nodes", "seconds", "gpus", "uuid")}
    assert wanted == {
        "kind": "memory", "nodes": ["gpu1", "gpu2"], "seconds": 900, "gpus": 2, "uuid": ""
    }  # fmt: skip
    assert json.loads(output[output.index("{") :])["gpus"][0]["per_second"] == 2.8e12


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--seconds", "3601"), "3600"),
        (("--seconds", "5"), "10"),
        (("--kind", "nothing"), "nothing"),
        (("--gpu", "GPU-1", "--gpus", "2"), "either --gpu or --gpus"),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    code, output, asked = told(monkeypatch, Outcome(kind="memory", asked_s=60), *words)
    assert code == 2
    assert says in output
    assert asked == {}


def test_a_run_that_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "pyinfra", lambda *_, **__: runs.Ended(1, "", "no inventory"))
    done = runner.invoke(app, ["load", "inventories/x.py", "--kind", "compute"])
    assert done.exit_code == 2
    assert "no inventory" in done.output


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
    ended = runs.pyinfra("i.py", "deploy.py", quiet=True, tidies=True)
    assert (ended.code, ended.answer) == (128 + signal.Signals[name], "told")
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
    code += 'try: runs.pyinfra("i.py", "deploy.py", quiet=True)\n'
    code += "except typer.Exit as end: sys.exit(end.exit_code)\n"
    command = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    until = time.monotonic() + 20
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.1)
    command.send_signal(signal.Signals[name])
    _, said = command.communicate(timeout=20)
    assert command.returncode == 128 + signal.Signals[name]
    assert said.decode().splitlines() == ["interrupted: run it again"]
    assert (tmp_path / "tidied").exists()
