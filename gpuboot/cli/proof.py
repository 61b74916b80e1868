"""`gpuboot verify` and `gpuboot report show`: a proof made and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuboot.cli import runs
from gpuboot.config.exit_codes import FAILED, NOT_WRITTEN, with_unwritten

if TYPE_CHECKING:
    # report.model is imported where a report is read: 0.55 of 0.75 s of CPU of `gpuboot --help`
    from gpuboot.verify.report.report_model import Report

VERIFY = "deploys/verify.py"


_TestAlert = Annotated[
    Literal["critical", "warning", "info"] | None,
    typer.Option(
        "--test-alert",
        help="Send a test alert of this severity, and wait until its receiver took it.",
    ),
]
_Level = Annotated[
    Literal["quick", "standard", "deep"] | None,
    typer.Option(
        "--level",
        help="quick: what answers, without a pod; standard: a computation on each free GPU; "
        "deep: besides, long tests of nodes that no pod uses. "
        "Default: verify.level of the settings.",
    ),
]
_Nodes = Annotated[
    str, typer.Option("--nodes", metavar="NAME,...", help="Only the GPUs of these nodes.")
]


def verify(
    inventory: runs.Inventory,
    level: _Level = None,
    nodes: _Nodes = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the deep tests of the last report.")
    ] = False,
    test_alert: _TestAlert = None,
    json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """Prove every GPU of a cluster, and change nothing.

    Exit code: 0 proven (with --level quick: answering), 1 failed, 2 not covered or could not tell,
    3 a file could not be written.
    """
    from gpuboot.verify.report.report_model import POINTER

    options = runs.options([*(data or []), *_host_data(level, nodes, resume, test_alert)])
    result = runs.pyinfra(inventory, VERIFY, options, answer=POINTER)
    path = Path(result.answer) / "verify.json"
    if not result.answer or not path.exists():
        # a wrong inventory, or a verdict without a file; a killed run tells nothing
        has_verdict = result.code in (FAILED, NOT_WRITTEN)
        raise typer.Exit(result.code if has_verdict else runs.COULD_NOT_TELL)
    proof = _load(path)
    if json:
        print(path.read_text(encoding="utf-8"), end="")
    raise typer.Exit(with_unwritten(proof.exit, result.code == NOT_WRITTEN))


def _host_data(level: str | None, nodes: str, resume: bool, test_alert: str | None) -> list[str]:
    """What the options are for deploys/verify.py, as KEY=VALUE."""
    return [
        *([f"gpuboot_level={level}"] if level else []),
        *([f"gpuboot_nodes={nodes}"] if nodes else []),
        *(["gpuboot_resume=yes"] if resume else []),
        *([f"gpuboot_test_alert={test_alert}"] if test_alert else []),
    ]


def report(
    folder: Annotated[Path, typer.Argument(help="A report: its folder or verify.json.")] = Path(
        "reports/latest"
    ),
) -> None:
    """Show a report again. Exit code: the verdict's."""
    folder = folder if folder.is_dir() or not folder.exists() else folder.parent
    path = folder / "verify.json"
    from gpuboot.verify.report.report_terminal import show

    proof = _load(path, "`gpuboot verify INVENTORY` makes one")
    show(proof, folder)
    raise typer.Exit(proof.exit)


def _load(path: Path, remedy: str = "") -> Report:
    from gpuboot.verify.report.report_model import ReportError, load

    try:
        return load(path)
    except ReportError as error:
        runs.stop(f"{error}\n    remedy: {remedy}" if remedy else str(error))
