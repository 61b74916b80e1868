"""`gpuboot query`: how busy GPUs are, with the answer's age and source, or why nobody knows."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import runs

if TYPE_CHECKING:
    from gpuboot.telemetry.usage_query import UsageQuery

UNKNOWN = runs.COULD_NOT_TELL
DEPLOY = "deploys/query.py"


class What(StrEnum):
    """Whose GPUs."""

    pod = "pod"
    namespace = "namespace"
    gpu = "gpu"


Whose = Annotated[What, typer.Argument(help="Whose load: a pod's, a namespace's, one GPU's.")]
Name = Annotated[str, typer.Argument(help="Name of the pod or namespace, or the GPU's UUID.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The pod's namespace.")]
Inventory = Annotated[
    str | None,
    typer.Option("--inventory", "-i", help="pyinfra inventory: Prometheus is reached by SSH."),
]
Url = Annotated[str | None, typer.Option("--url", help="Or Prometheus' own address.")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="Bearer token for --url.")]
CaFile = Annotated[Path | None, typer.Option("--ca-file", help="PEM authority for --url.")]
Metric = Annotated[
    list[str] | None,
    typer.Option("--metric", help="engine, sm or memory; again for more; default: all."),
]
Window = Annotated[float, typer.Option("--window", min=1, help="Seconds to average over.")]
Stale = Annotated[
    float,
    typer.Option("--stale", min=0, help="Oldest sample, in seconds; 0: two scrape intervals."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole answer.")]


def query(
    what: Whose,
    name: Name,
    namespace: Namespace = "default",
    inventory: Inventory = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    metric: Metric = None,
    window: Window = 120,
    stale: Stale = 0,
    as_json: AsJson = False,
    data: runs.Data = None,
) -> None:
    """How busy GPUs are, with the age and source of each number, or why nobody knows.

    Exit code: 0 all numbers asked for are known, 2 at least one is not.
    """
    from gpuboot.telemetry.usage import METRICS
    from gpuboot.telemetry.usage_query import UsageQuery, text

    metrics = tuple(metric or METRICS)
    if wrong := [item for item in metrics if item not in METRICS]:
        runs.stop(f"no such metric: {', '.join(wrong)}\n    remedy: one of {', '.join(METRICS)}")
    place = {"pod": namespace, "namespace": name, "gpu": ""}[what.value]
    question = UsageQuery(what.value, name, place, window, stale)
    if url is not None and inventory is None:
        answer = _direct(question, url, token_file, ca_file)
    elif inventory is not None and url is None:
        answer = _through_ssh(question, inventory, data or [])
    else:
        runs.stop("where to ask?\n    remedy: give either --inventory FILE or --url ADDRESS")
    document = json.loads(answer)
    print(json.dumps(document, indent=1) if as_json else text(document, metrics))
    known = all(document["values"][item]["value"] is not None for item in metrics)
    raise typer.Exit(0 if known else UNKNOWN)


def _direct(question: UsageQuery, url: str, token_file: Path | None, ca_file: Path | None) -> str:
    from gpuboot.telemetry.usage_query import answer
    from gpuboot.verify.http_reader import HttpReader
    from gpuboot.verify.prometheus import Prometheus

    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file else ""
        reader = HttpReader(url, token, ca_file)
    except (OSError, ValueError) as error:
        runs.stop(str(error))
    return answer(Prometheus(reader, ""), question)


def _through_ssh(question: UsageQuery, inventory: str, data: list[str]) -> str:
    """pyinfra holds the connections of an inventory, so a deploy asks."""
    ended = runs.pyinfra(
        inventory,
        DEPLOY,
        runs.options(data),
        {"GPUBOOT_QUESTION": question.to_json()},
        quiet=True,
    )
    if not ended.answer:
        runs.stop(f"{ended.output.strip()}\nnobody could be asked")
    return ended.answer
