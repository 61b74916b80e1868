"""One table says how every command ends, and it names every command and deploy that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gpuboot.cli import app
from gpuboot.config.exit_codes import with_unwritten
from gpuboot.docs.exit_codes_page import TABLE, exit_codes_markdown

ROOT = Path(__file__).resolve().parents[2]


def commands(group: Any, before: str = "") -> Iterator[str]:
    if hasattr(group, "commands"):
        for name, command in group.commands.items():
            yield from commands(command, f"{before} {name}".strip())
    else:
        yield before


def test_every_command_is_in_the_table() -> None:
    assert set(TABLE["commands"]) == set(commands(typer.main.get_command(app)))


def test_every_deploy_is_in_the_table() -> None:
    assert set(TABLE["deploys"]) == {path.name for path in (ROOT / "deploys").glob("[a-z]*.py")}


def test_the_page_is_the_table() -> None:
    assert (ROOT / "docs/exit-codes.md").read_text() == exit_codes_markdown()


@pytest.mark.parametrize(("code", "end"), [(0, 3), (1, 1), (2, 2), (130, 130)])
def test_a_file_that_is_not_written_hides_no_verdict(code: int, end: int) -> None:
    assert with_unwritten(code, True) == end
    assert with_unwritten(code, False) == code
