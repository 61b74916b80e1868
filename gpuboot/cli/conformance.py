"""`gpuboot conformance`: a suite that others wrote, run against a cluster."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import ending, runs
from gpuboot.config.exit_codes import BY_SIGNAL, FAILED, INTERRUPTED, OK, with_unwritten

if TYPE_CHECKING:
    from gpuboot.conformance.results import Results
    from gpuboot.conformance.runner import Outcome

DEPLOY = "deploys/conformance.py"

_Kubernetes = Annotated[
    bool,
    typer.Option("--kubernetes", help="Kubernetes' own suite, from upstream's conformance image."),
]
_Focus = Annotated[
    str, typer.Option("--focus", help="Only specs that this regular expression of Go matches.")
]
_Processes = Annotated[
    int, typer.Option("--processes", min=1, max=32, help="That run specs at the same time.")
]
_Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for junit_01.xml and e2e.log; default: one of reports/."),
]


def conformance(
    inventory: runs.Inventory,
    kubernetes: _Kubernetes = False,
    focus: _Focus = "",
    processes: _Processes = 1,
    out: _Out = None,
    data: runs.Data = None,
) -> None:
    """Run Kubernetes' conformance suite in the cluster, fetch its results, and remove it again.

    Exit code: 0 all specs passed, 1 a spec failed, 2 nobody could tell, 130 ended before its time.
    """
    if not kubernetes:
        runs.stop("which suite?\n    remedy: --kubernetes, the only one there is")
    request = {"focus": focus, "processes": processes}
    variables = {"GPUBOOT_CONFORMANCE": json.dumps(request), "GPUBOOT_PARENT": str(os.getpid())}
    typer.echo("the suite makes and removes namespaces, and disturbs work on the nodes", err=True)
    result = runs.pyinfra(
        inventory, DEPLOY, runs.options(data), variables, capture_output=True, tidies=True
    )
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    raise typer.Exit(_report(result, out or _folder()))


def _folder() -> Path:
    return Path("reports") / f"conformance-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _report(result: runs.PyinfraResult, folder: Path) -> int:
    """Write the suite's files, print what failed and one line; the exit code."""
    from gpuboot.conformance.results import ResultsError, parse_junit, results_of
    from gpuboot.conformance.runner import from_json

    outcome = from_json(result.answer)
    is_written = not outcome.files or ending.try_write(lambda: _write(outcome, folder), folder)
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


def _write(outcome: Outcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in outcome.files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _print(results: Results) -> None:
    for name, text in results.failed.items():
        print(f"FAILED {name}\n    {next(iter(text.splitlines()), '')}")
