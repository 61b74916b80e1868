"""The command line as a whole: how a site is named, how long a help page is, what was renamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gpuboot.cli import app

runner = CliRunner()
# of a site's folder, of hosts that are no site yet, and of what the code itself holds
WITHOUT_SITE = ("init", "report", "docs", "autoscaling", "mirror serve", "mirror settings")


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        path = f"{before} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, path)
        else:
            yield path, command


COMMANDS = dict(commands(typer.main.get_command(app)))


def parameters(command: Any, kind: str) -> list[Any]:
    return [item for item in command.params if item.param_type_name == kind]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_help_page_has_ten_options_at_most(name: str) -> None:
    options = [item for item in parameters(COMMANDS[name], "option") if not item.hidden]
    assert len([item for item in options if item.name != "help"]) <= 10


@pytest.mark.parametrize("name", ["init", "cost", "capacity"])
def test_every_option_is_on_the_second_help_page(name: str) -> None:
    env = {"COLUMNS": "200"}
    first = runner.invoke(app, [name, "--help"], env=env).output
    result = runner.invoke(app, [name, "--help-all"], env=env)
    command = dict(commands(typer.main.get_command(app)))[name]
    rare = {item.opts[0] for item in parameters(command, "option") if item.hidden}
    assert result.exit_code == 0
    assert rare
    assert not any(f"{option} " in first for option in rare)
    assert all(f"{option} " in result.output for option in rare)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_site_is_named_by_an_argument(name: str) -> None:
    options = {option for item in parameters(COMMANDS[name], "option") for option in item.opts}
    assert not options & {"-i", "--inventory", "--url"}
    if name.startswith(WITHOUT_SITE):
        return
    arguments = [
        item.metavar or item.name.upper() for item in parameters(COMMANDS[name], "argument")
    ]
    expected = arguments[1] if name == "mirror check" else arguments[0]
    assert expected == "INVENTORY"


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (["runs"], "gpuboot report runs"),
        (["history", "gpu1"], "gpuboot report gpus"),
        (["bundle", "prod.py", "--to", "/tmp"], "gpuboot diagnose INVENTORY --bundle FOLDER"),
        (["rules"], "gpuboot docs rules"),
        (["versions"], "gpuboot docs versions"),
    ],
)
def test_a_command_of_before_says_its_new_name(words: list[str], new: str) -> None:
    result = runner.invoke(app, words, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert f"{words[0]} is now `{new}`" in result.stderr
