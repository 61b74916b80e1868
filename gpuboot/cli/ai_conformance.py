"""What `gpuboot conformance` writes and says of CNCF's Kubernetes AI Conformance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gpuboot.cli import ending, runs
from gpuboot.config.exit_codes import BY_SIGNAL, FAILED, INTERRUPTED, with_unwritten

if TYPE_CHECKING:
    from gpuboot.conformance.ai.evidence_results import Outcome


def read_checklist(path: Path | None) -> dict[str, Any] | None:
    """The programme's file; None without one. Ends the command where it is none."""
    from gpuboot.conformance.ai.submission import ChecklistError, parse_checklist

    if path is None:
        return None
    try:
        return parse_checklist(path.read_text(encoding="utf-8"))
    except (OSError, ChecklistError) as error:
        runs.stop(
            f"{path}: {error}\n    remedy: take docs/AIConformance-X.Y.yaml of the cluster's "
            "Kubernetes from github.com/cncf/k8s-ai-conformance"
        )


def report(
    result: runs.PyinfraResult, checklist: dict[str, Any] | None, cluster: str, folder: Path
) -> int:
    """Write the folder, print a line for each requirement; the exit code.

    + cluster: its name, for people
    """
    from gpuboot.conformance.ai import submission
    from gpuboot.conformance.ai.evidence_requirements import LEVELS
    from gpuboot.conformance.ai.evidence_results import exit_code, from_json, open_musts
    from gpuboot.conformance.ai.folder import PRODUCT, files

    outcome = from_json(result.answer)
    if outcome.stopped:
        typer.echo("ended before its time: what was made for it is removed", err=True)
        return result.code if result.code in BY_SIGNAL else INTERRUPTED
    if outcome.error:
        runs.stop(outcome.error)
    levels: dict[str, str] = submission.levels(checklist) if checklist else {**LEVELS}
    contents = files(outcome, levels, cluster)
    refusal = _add_product(contents, outcome, checklist) if checklist else ""
    is_written = ending.try_write_files(folder, contents)
    _print(outcome, levels)
    _print_ending(folder if is_written else None, bool(checklist))
    if refusal:
        runs.stop(refusal)
    code = exit_code(outcome.results, levels)
    if checklist and (names := open_musts(outcome.results, levels)):
        print(f"{PRODUCT} has no status for {', '.join(names)}: it can't be submitted like that")
        code = FAILED
    return with_unwritten(code, not is_written)


def _add_product(contents: dict[str, str], outcome: Outcome, checklist: dict[str, Any]) -> str:
    """Add PRODUCT.yaml; why there is none, or ""."""
    from gpuboot.conformance.ai import submission
    from gpuboot.conformance.ai.folder import PRODUCT, evidence_path

    paths = {name: evidence_path(name) for name in submission.levels(checklist)}
    version, simulated = outcome.kubernetes, outcome.simulated
    try:
        text = submission.product(checklist, outcome.results, version, paths, simulated)
    except submission.ChecklistError as error:
        return f"no {PRODUCT}: --checklist: {error}\n    remedy: take that release's file"
    contents[PRODUCT] = text
    return ""


def _print(outcome: Outcome, levels: dict[str, str]) -> None:
    from gpuboot.conformance.ai.evidence_results import WORDS
    from gpuboot.verify.report.report_model import SIMULATED

    if outcome.simulated:
        print(SIMULATED.format(outcome.simulated))
    for item in outcome.results:
        if item.id not in levels:
            continue
        print(f"{levels[item.id] or '-':6} {item.id}: {WORDS[item.status]}: {item.summary}")
        if item.remedy:
            print(f"       remedy: {item.remedy}")


def _print_ending(folder: Path | None, has_product: bool) -> None:
    if folder:
        print(f"files: {folder}")
    if not has_product:
        print(
            "no PRODUCT.yaml: it takes the programme's own file, `--checklist "
            "AIConformance-X.Y.yaml` (github.com/cncf/k8s-ai-conformance, docs/)"
        )
