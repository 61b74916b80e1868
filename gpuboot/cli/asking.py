"""Asking Prometheus from a command: through an inventory's leader, or at an address."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gpuboot.cli import runs

if TYPE_CHECKING:
    from gpuboot.query.questions import Answerable, Question
    from gpuboot.verify.prometheus import Prometheus

DEPLOY = "deploys/query.py"

_SITE = (
    "pyinfra inventory, by whose leader Prometheus is reached; or Prometheus' address: https://..."
)
Site = Annotated[str, typer.Argument(metavar="INVENTORY", help=_SITE)]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="Bearer token for an address.")
]
CaFile = Annotated[Path | None, runs.rare_option("--ca-file", help="PEM authority for an address.")]


def is_address(site: str) -> bool:
    """Whether a command was given Prometheus' address instead of an inventory."""
    return "://" in site


def answer_question(
    question: Answerable,
    site: str,
    token_file: Path | None,
    ca_file: Path | None,
    data: Sequence[str] | None,
) -> dict[str, Any]:
    """The answer of a site's Prometheus. Ends the command where nobody could be asked."""
    if is_address(site):
        answer = question.answer(prometheus_at(site, token_file, ca_file))
    else:
        answer = through_leader(question, site, data or [])
    return cast(dict[str, Any], json.loads(answer))


def prometheus_at(url: str, token_file: Path | None, ca_file: Path | None) -> Prometheus:
    """The Prometheus at an address; ends the command where the options are no way to it."""
    from gpuboot.verify.http_reader import HttpReader
    from gpuboot.verify.prometheus import Prometheus

    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file else ""
        return Prometheus(HttpReader(url, token, ca_file), "")
    except (OSError, ValueError) as error:
        runs.stop(str(error))


def through_leader(question: Question, inventory: str, data: Sequence[str]) -> str:
    """What the Prometheus of an inventory's cluster answers, as JSON.

    pyinfra holds the connections of an inventory, so a deploy asks.
    """
    result = runs.pyinfra(
        inventory,
        DEPLOY,
        runs.options(data),
        {"GPUBOOT_QUESTION": question.to_json()},
        capture_output=True,
    )
    if not result.answer:
        runs.stop(f"{result.output.strip()}\nnobody could be asked")
    return result.answer
