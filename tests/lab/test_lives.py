"""Lives of used machines: their scripts, and that docs/servers.md tells what becomes of each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab import cli, state
from lab.lives import FOLDER, LIVES, Life, lives
from lab.lives.dress import wearers
from lab.state import LabError

PAGE = Path(__file__).parents[2] / "docs/servers.md"
each_life = pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)


@each_life
def test_its_script_is_clean_and_has_its_functions(life: Life) -> None:
    text = f"#!/bin/sh\n{(FOLDER / 'functions.sh').read_text()}{life.script.read_text()}"
    # SC2154: variables that the lab sets; SC2034: those that not all lives use
    command = ["shellcheck", "--exclude=SC2154,SC2034", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    functions = set(re.findall(r"^(\w+)\(\) \{", life.script.read_text(), re.MULTILINE))
    assert functions >= {"wear", "works"} | ({"off"} if life.refusal else set())


def test_every_script_is_of_a_life() -> None:
    names = {path.stem for path in FOLDER.glob("*.sh")} - {"functions"}
    assert names == {life.name for life in LIVES}


@each_life
def test_the_table_of_servers_says_what_becomes_of_it(life: Life) -> None:
    [row] = [row for row in _rows() if f"(life `{life.name}`)" in row]
    outcome = row.split(" | ", 1)[1].casefold()
    if life.refusal:
        assert "refused" in outcome or "what a run removes" in outcome
    else:
        assert not outcome.startswith("refused")


def _rows() -> list[str]:
    table = PAGE.read_text().partition("## What is on the servers already")[2]
    return [line for line in table.partition("\n### ")[0].splitlines() if line.startswith("| ")]


def test_the_table_says_of_nothing_twice_what_becomes_of_it() -> None:
    lives_in_table = [row.split(" | ")[0] for row in _rows()]
    assert sorted(lives_in_table) == sorted(set(lives_in_table))


def test_the_table_names_no_other_life() -> None:
    linked_names = re.findall(r"\(life `([^`]+)`\)", PAGE.read_text())
    assert sorted(linked_names) == sorted(life.name for life in LIVES)


def test_without_names_all_are_worn_that_are_deployed_to() -> None:
    assert lives([]) == [life for life in LIVES if not life.refusal]
    names = ["moby", "docker"]
    assert [life.name for life in lives(names)] == ["docker", "moby"]
    with pytest.raises(LabError, match="no life is called dokcer; there are: cloud-hosts, sysctl"):
        lives(["docker", "dokcer"])


def test_docker_is_on_machines_with_gpus_alone() -> None:
    lab = state.plan("lab", 0, (2, 0), single=False)
    [docker] = lives(["docker"])
    assert [machine.name for machine in wearers(lab, docker)] == ["gpu1"]
    [moby] = lives(["moby"])
    assert [machine.name for machine in wearers(lab, moby)] == ["cp1", "gpu1", "gpu2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--life", "docker"], "--life is for a lab of used machines: --used"),
        (["--used", "--life", "x"], "no life is called x; "),
        (["--used", "--docker"], "choose one of --docker, --previous-release, "),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"lab: {message}")
