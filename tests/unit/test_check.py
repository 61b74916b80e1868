"""`gpuboot check` as a person uses it; pyinfra is replaced by its answer."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config.problems import Problem
from gpuboot.hosts.reading import Reading
from tests.unit.fake_pyinfra import FakePyinfra, fake_pyinfra

__all__ = ["fake_pyinfra"]
runner = CliRunner()


def test_check_passes(fake_pyinfra: FakePyinfra) -> None:
    fake_pyinfra.answer = Reading(warnings=("old",))
    arguments = ["check", "inv.py", "--data", "a=1", "--same-sudo-password"]
    result = runner.invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "inv.py: no problem" in result.stderr
    assert fake_pyinfra.commands[0][3:] == [
        "inv.py", "deploys/check.py", "-y", "--data", "a=1", "--same-sudo-password",
    ]  # fmt: skip
    document = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert document == {"inventory": "inv.py", "passed": True, "problems": [], "warnings": ["old"]}


def test_check_names_the_problems(fake_pyinfra: FakePyinfra) -> None:
    fake_pyinfra.answer, fake_pyinfra.code = (
        Reading(problems=(Problem("gpu1", "cause", "remedy"),)),
        1,
    )
    result = runner.invoke(app, ["check", "inv.py", "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert not document["passed"]
    assert document["problems"] == [{"host": "gpu1", "cause": "cause", "remedy": "remedy"}]


@pytest.mark.parametrize("code", [0, 1, -9])
def test_a_check_without_an_answer_has_not_passed(fake_pyinfra: FakePyinfra, code: int) -> None:
    fake_pyinfra.answer, fake_pyinfra.code = None, code
    result = runner.invoke(app, ["check", "inv.py", "--json"])
    assert (result.exit_code, result.stdout) == (1, "")
