"""`python -m lab.conformance`: Kubernetes' conformance suite on a lab of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from gpuboot.conformance.suite_results import Results
from lab import failures, state
from lab.build.progress import Progress, duration
from lab.build.software import kubernetes_version
from lab.cli_up import progress
from lab.conformance import runs, variants
from lab.conformance.suite import PARTS, PROCESSES
from lab.conformance.variants import After, Variant
from lab.state import LabError

app = typer.Typer(add_completion=False)

_Only = Annotated[str, typer.Option("--only", help="parallel or serial: one part of the suite.")]
_Focus = Annotated[str, typer.Option(help="Only specs that this regular expression of Go matches.")]
_Processes = Annotated[int, typer.Option(min=1, help="That run specs at the same time.")]
_After = Annotated[After, typer.Option(help="What the cluster has behind it.")]
_ControlPlanes = Annotated[int, typer.Option(help="Control planes of the lab: 1 or 3.")]
_Flannel = Annotated[str, typer.Option("--flannel-backend", help="vxlan, host-gw or wireguard.")]
_Inside = Annotated[
    bool, typer.Option("--inside", help="From a pod, by `gpuboot conformance`, in one part.")
]
_KeepLab = Annotated[bool, typer.Option("--keep", help="Leave the lab running.")]
_Out = Annotated[Path | None, typer.Option(help="Folder for JUnit files and logs.")]


@app.command()
def conformance(
    only: _Only = "",
    focus: _Focus = "",
    processes: _Processes = PROCESSES,
    after: _After = After.deploy,
    control_planes: _ControlPlanes = 1,
    flannel_backend: _Flannel = "",
    inside: _Inside = False,
    keep_lab: _KeepLab = False,
    name: Annotated[str, typer.Option(help="The lab's name.")] = "conformance",
    out: _Out = None,
) -> None:
    """Run the suite. Exit code: 0 all specs passed that are not in the table of lab/conformance."""
    if only not in ("", *PARTS):
        raise LabError(f"--only is {' or '.join(PARTS)}, not {only!r}")
    variant = Variant(after, control_planes, flannel_backend)
    parts = [part for part in PARTS.values() if only in ("", part.name)]
    folder = out or variants.ROOT / "reports" / f"conformance-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder = folder.resolve()  # the suite has another working folder
    folder.mkdir(parents=True, exist_ok=True)
    report_progress = progress()
    with _taken_down(name, keep_lab, report_progress):
        lab, programs = variants.prepare(name, variant, report_progress)
        started = time.monotonic()
        if inside:
            results = runs.from_a_pod(lab, variant, folder, focus, processes, report_progress)
        else:
            results = runs.parts(parts, programs, lab, folder, focus, processes, report_progress)
        elapsed = time.monotonic() - started
    _print(results, [variant.title, _selection(only, focus, inside)], elapsed, folder)
    raise typer.Exit(0 if results.is_good else 1)


@contextmanager
def _taken_down(name: str, keep_lab: bool, report_progress: Progress) -> Iterator[None]:
    """Take the lab down at the end, also when a signal ends this."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if not keep_lab and name in {lab.name for lab in state.labs()}:
            variants.run(
                [sys.executable, "-m", "lab", "down", "--name", name], os.environ, report_progress
            )


def _selection(only: str, focus: str, inside: bool) -> str:
    parts = [f"only {only}"] if only else []
    parts += [f"only {focus!r}"] if focus else []
    return ", ".join([*parts, *(["from a pod"] if inside else [])])


def _print(results: Results, notes: Sequence[str], elapsed: float, folder: Path) -> None:
    """Each spec that failed or cannot run, and then one line."""
    for name, text in results.failed.items():
        print(f"FAILED {name}\n    {text.splitlines()[0] if text else ''}")
    for name, reason in results.skipped.items():
        print(f"SKIPPED {name}\n    {reason}")
    details = "".join(f", {note}" for note in notes if note)
    print(
        f"conformance {kubernetes_version()}{details}: {results.line} "
        f"in {duration(elapsed)}; JUnit: {folder}"
    )


def main(arguments: Sequence[str]) -> int:
    """Run the command; what goes wrong is one message on stderr, exit code 1."""
    command: Any = typer.main.get_command(app)
    try:
        command(list(arguments), prog_name="scripts/test --conformance")
    except LabError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        print(f"conformance: {failures.report(error)}", file=sys.stderr)
        return 1
    return 0
