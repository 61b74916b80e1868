"""`gpuboot query`: how busy GPUs are, with the answer's age and source, or why nobody knows."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from gpuboot.cli import asking, runs

UNKNOWN = runs.COULD_NOT_TELL


Subject = Annotated[
    Literal["pod", "namespace", "gpu"],
    typer.Argument(help="Whose load: a pod's, a namespace's, one GPU's."),
]
Name = Annotated[str, typer.Argument(help="Name of the pod or namespace, or the GPU's UUID.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The pod's namespace.")]
Metric = Annotated[
    list[str] | None,
    typer.Option("--metric", help="engine, sm or memory; again for more; default: all."),
]
Window = Annotated[float, typer.Option("--window", min=1, help="Seconds to average over.")]
Stale = Annotated[
    float,
    typer.Option("--stale", min=0, help="Oldest sample, in seconds; 0: two scrape intervals."),
]


def query(
    site: asking.Site,
    subject: Subject,
    name: Name,
    namespace: Namespace = "default",
    token_file: asking.TokenFile = None,
    ca_file: asking.CaFile = None,
    metric: Metric = None,
    window: Window = 120,
    stale: Stale = 0,
    as_json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """How busy GPUs are, with the age and source of each number, or why nobody knows.

    Exit code: 0 all numbers asked for are known, 2 at least one is not.
    """
    from gpuboot.query.usage import METRICS
    from gpuboot.query.usage_query import UsageQuery, text

    metrics = tuple(metric or METRICS)
    if unknown_metrics := [item for item in metrics if item not in METRICS]:
        runs.stop(
            f"no such metric: {', '.join(unknown_metrics)}\n    remedy: one of {', '.join(METRICS)}"
        )
    place = {"pod": namespace, "namespace": name, "gpu": ""}[subject]
    question = UsageQuery(subject, name, place, window, stale)
    document = asking.answer_question(question, site, token_file, ca_file, data)
    print(json.dumps(document, indent=1) if as_json else text(document, metrics))
    all_known = all(document["values"][item]["value"] is not None for item in metrics)
    raise typer.Exit(0 if all_known else UNKNOWN)
