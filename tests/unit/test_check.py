"""`gpuboot check` as a person uses it; pyinfra is replaced by its answer."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gpuboot.cli import app
from gpuboot.config.problems import Problem
from gpuboot.hosts.reading import Reading
from tests.unit.pretended import Pretended, pretended

__all__ = ["pretended"]
runner = CliRunner()


def test_check_passes(pretended: Pretended) -> None:
    pretended.answer = Reading(warnings=("old",))
    arguments = ["check", "inv.py", "--data", "a=1", "--same-sudo-password"]
    done = runner.invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "inv.py: no problem" in done.stderr
    assert pretended.commands[0][3:] == [
        "inv.py", "deploys/check.py", "-y", "--data", "a=1", "--same-sudo-password",
    ]  # fmt: skip
    found = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert found == {"inventory": "inv.py", "passed": True, "problems": [], "warnings": ["old"]}


def test_check_names_the_problems(pretended: Pretended) -> None:
    pretended.answer, pretended.code = Reading(problems=(Problem("gpu1", "cause", "remedy"),)), 1
    done = runner.invoke(app, ["check", "inv.py", "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert not found["passed"]
    assert found["problems"] == [{"host": "gpu1", "cause": "cause", "remedy": "remedy"}]


@pytest.mark.parametrize("code", [0, 1, -9])
def test_a_check_without_an_answer_has_not_passed(pretended: Pretended, code: int) -> None:
    pretended.answer, pretended.code = None, code
    done = runner.invoke(app, ["check", "inv.py", "--json"])
    assert (done.exit_code, done.stdout) == (1, "")
