"""`gpuboot profile`: what limits the work of GPUs, by which counters, and what to try first."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from gpuboot.cli import asking, runs

Subject = Annotated[
    Literal["pod", "job", "namespace", "node", "gpu"],
    typer.Argument(help="Whose GPUs: a pod's, a Job's, ..., or one by UUID."),
]
Name = Annotated[str, typer.Argument(help="Of the pod, Job, namespace or node; the GPU's UUID.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The pod's or Job's namespace.")]
Window = Annotated[
    float, typer.Option("--window", min=5, max=360, help="Minutes up to now that are judged.")
]


def profile(
    site: asking.Site,
    subject: Subject,
    name: Name,
    namespace: Namespace = "default",
    token_file: asking.TokenFile = None,
    ca_file: asking.CaFile = None,
    window: Window = 15,
    as_json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """What limits the work of GPUs: memory, arithmetic, links, input, heat; or that nobody knows.

    Exit code: 0 the class of every GPU is known, 2 at least one is not.
    """
    from gpuboot.query.profile.answer import ProfileQuestion
    from gpuboot.query.profile.text import is_known, text

    place = namespace if subject in ("pod", "job") else ""
    question = ProfileQuestion(subject, name, place, window * 60)
    answer = asking.answer_question(question, site, token_file, ca_file, data)
    print(json.dumps(answer, indent=1) if as_json else text(answer), flush=True)
    raise typer.Exit(0 if is_known(answer) else runs.COULD_NOT_TELL)
