"""`gpuboot load`: keep free GPUs busy for a while, so that their metrics move."""

from __future__ import annotations

import json as json_format
import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuboot.cli import runs
from gpuboot.config.exit_codes import BY_SIGNAL, FAILED, INTERRUPTED, OK

if TYPE_CHECKING:
    from gpuboot.verify.load.load_answers import Outcome

DEPLOY = "deploys/load.py"


_Kind = Annotated[
    Literal["compute", "memory", "transfer"],
    typer.Option(
        "--kind",
        help="compute: arithmetic; memory: copies within the GPU's memory; transfer: copies from "
        "and to the host.",
    ),
]
_Nodes = Annotated[str, typer.Option("--nodes", metavar="NAME,...", help="Only on these nodes.")]
_Gpu = Annotated[
    str,
    typer.Option(
        "--gpu", metavar="UUID", help="Only this GPU. All free ones of its node are held meanwhile."
    ),
]
_Seconds = Annotated[
    int, typer.Option("--seconds", min=10, max=3600, help="For how long, at most an hour.")
]
_Gpus = Annotated[
    int, typer.Option("--gpus", min=0, help="At most so many of each node; 0: all that are free.")
]


def load(
    inventory: runs.Inventory,
    kind: _Kind,
    nodes: _Nodes = "",
    gpu: _Gpu = "",
    seconds: _Seconds = 120,
    gpus: _Gpus = 0,
    json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """Keep GPUs busy that no pod holds, so that their metrics move. Ends with the command.

    Exit code: 0 done, 1 a GPU or its program failed, 2 no GPU was loaded or nobody could tell, 130
    ended before its time.
    """
    if gpu and gpus:
        runs.stop("either --gpu or --gpus\n    remedy: a UUID names one GPU already")
    names = [name for name in nodes.split(",") if name]
    request = {"kind": kind, "seconds": seconds, "gpus": gpus, "uuid": gpu, "nodes": names}
    variables = {"GPUBOOT_LOAD": json_format.dumps(request), "GPUBOOT_PARENT": str(os.getpid())}
    target_nodes = ", ".join(names) or "all nodes"
    typer.echo(f"{kind} for {seconds} s on free GPUs of {target_nodes}; Ctrl-C ends it", err=True)
    result = runs.pyinfra(
        inventory, DEPLOY, runs.options(data), variables, capture_output=True, tidies=True
    )
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    _print_result(result, inventory, json)


def _print_result(result: runs.PyinfraResult, inventory: str, as_json: bool) -> None:
    """What became of it, and the exit code."""
    from gpuboot.verify.load import load_answers
    from gpuboot.verify.load.load_answers import from_json

    outcome = from_json(result.answer)
    print(result.answer if as_json else load_answers.text(outcome, inventory))
    raise typer.Exit(_code(outcome, result.code))


def _code(outcome: Outcome, code: int) -> int:
    if outcome.stopped:
        return code if code in BY_SIGNAL else INTERRUPTED
    if any(gpu.error for gpu in outcome.gpus):
        return FAILED
    return OK if outcome.gpus and not outcome.error else runs.COULD_NOT_TELL
