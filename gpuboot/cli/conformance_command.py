"""`gpuboot conformance`: a suite that others wrote, run against a cluster."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import ai_conformance, ending, runs
from gpuboot.config.exit_codes import BY_SIGNAL, FAILED, INTERRUPTED, OK, with_unwritten

if TYPE_CHECKING:
    from gpuboot.conformance.suite_results import Results

DEPLOY = "deploys/conformance.py"
_NOTICES = {
    True: "the suite makes and removes namespaces, and disturbs work on the nodes",
    False: "it takes free GPUs for some minutes, and a namespace of its own; Ctrl-C ends it",
}

_Kubernetes = Annotated[
    bool,
    typer.Option(
        "--kubernetes",
        help="Kubernetes' own suite, from upstream's image, instead of CNCF's AI conformance.",
    ),
]
_Focus = Annotated[
    str,
    typer.Option(
        "--focus", help="With --kubernetes: only specs that this regular expression of Go matches."
    ),
]
_Processes = Annotated[
    int,
    typer.Option(
        "--processes", min=1, max=32, help="With --kubernetes: that run specs at the same time."
    ),
]
_Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for what is written; default: one of reports/."),
]
_Checklist = Annotated[
    Path | None,
    typer.Option(
        "--checklist",
        metavar="AIConformance-X.Y.yaml",
        help="The programme's file of requirements, to be filled in as PRODUCT.yaml.",
    ),
]


def conformance(
    inventory: runs.Inventory,
    kubernetes: _Kubernetes = False,
    focus: _Focus = "",
    processes: _Processes = 1,
    checklist: _Checklist = None,
    out: _Out = None,
    data: runs.Data = None,
) -> None:
    """Look for evidence of CNCF's AI conformance, or run Kubernetes' own conformance suite.

    What either makes in the cluster is removed again. Exit code: 0 every MUST has evidence or does
    not apply (all specs passed), 1 one failed, 2 one was not run or nobody could tell, 130 ended
    before its time.
    """
    if not kubernetes and (focus or processes != 1):
        runs.stop("--focus and --processes are about --kubernetes")
    if kubernetes and checklist:
        runs.stop("--checklist is about AI conformance\n    remedy: leave --kubernetes out")
    requirements = ai_conformance.read_checklist(checklist)
    request: dict[str, str | int] = {"focus": focus, "processes": processes} if kubernetes else {}
    typer.echo(_NOTICES[kubernetes], err=True)
    result = _run(inventory, request, data)
    if kubernetes:
        raise typer.Exit(_report(result, out or _folder("conformance")))
    folder = out or _folder("ai-conformance")
    raise typer.Exit(ai_conformance.report(result, requirements, Path(inventory).stem, folder))


def _run(
    inventory: str, request: dict[str, str | int], data: list[str] | None
) -> runs.PyinfraResult:
    """What the deploy answered. Ends the command where it did not. + request: {}: evidence"""
    variables = {"GPUBOOT_CONFORMANCE": json.dumps(request), "GPUBOOT_PARENT": str(os.getpid())}
    result = runs.pyinfra(
        inventory, DEPLOY, runs.options(data), variables, capture_output=True, tidies=True
    )
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    return result


def _folder(name: str) -> Path:
    return Path("reports") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _report(result: runs.PyinfraResult, folder: Path) -> int:
    """Write the suite's files, print what failed and one line; the exit code."""
    from gpuboot.conformance.suite_results import ResultsError, parse_junit, results_of
    from gpuboot.conformance.suite_runner import from_json

    outcome = from_json(result.answer)
    is_written = ending.try_write_files(folder, outcome.files)
    if outcome.stopped:
        typer.echo("ended before its time: what was in its namespaces is removed", err=True)
        return result.code if result.code in BY_SIGNAL else INTERRUPTED
    if outcome.error:
        runs.stop(outcome.error)
    try:
        results = results_of(parse_junit(outcome.files["junit_01.xml"]))
    except ResultsError as error:
        runs.stop(str(error))
    _print(results)
    place = f"; files: {folder}" if is_written else ""
    print(
        f"Kubernetes conformance: {results.line}; the suite's exit code {outcome.exit_code}{place}"
    )
    return with_unwritten(
        OK if results.is_good and not outcome.exit_code else FAILED, not is_written
    )


def _print(results: Results) -> None:
    for name, text in results.failed.items():
        print(f"FAILED {name}\n    {next(iter(text.splitlines()), '')}")
