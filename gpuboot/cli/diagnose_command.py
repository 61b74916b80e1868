"""`gpuboot diagnose`: from symptoms to causes, each with evidence and a command to type."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import ending, runs
from gpuboot.config.exit_codes import NOT_WRITTEN, OK
from gpuboot.diagnose import UNTIL

if TYPE_CHECKING:
    from gpuboot.diagnose.cause_model import Finding
    from gpuboot.diagnose.facts import Facts
    from gpuboot.diagnose.site_recording import Recording

DEPLOY = "deploys/diagnose.py"
# of the minute that it may take: the rest is for starting pyinfra and telling what was found
WITHIN_S = 50.0
# a run of site.py tries longer, since a machine may be booting; each try at a silent one takes 10 s
RETRIES = 1


def diagnose(
    inventory: runs.Inventory,
    pod: Annotated[
        str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Only what concerns this pod.")
    ] = "",
    node: Annotated[str, typer.Option("--node", help="Only what concerns this node.")] = "",
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="FOLDER", help="Instead: pack it all for support there."),
    ] = None,
    json: runs.AsJson = False,
    data: runs.Data = None,
) -> None:
    """Find out why a cluster, a node or a pod does not work. Changes nothing; takes a minute.

    Exit code: 0 no cause found, or the bundle is written, 1 causes found, 2 could not look, 3 could
    not write.
    """
    from gpuboot.diagnose import cause_model, diagnosis_report
    from gpuboot.diagnose import facts as all_facts
    from gpuboot.diagnose.causes import TABLE

    _check_options(pod, node, bundle, json)
    started = time.monotonic()
    recording = recorded(inventory, data)
    facts = all_facts.of(recording)
    _check_target(pod, node, facts)
    findings = cause_model.diagnose(facts, TABLE)
    if bundle:
        raise typer.Exit(write_bundle(bundle, recording, findings, facts))
    if pod or node:
        findings = cause_model.findings_about(findings, facts, pod, node)
    format_report = diagnosis_report.document if json else diagnosis_report.text
    print(format_report(findings, facts, recording.site, time.monotonic() - started))
    raise typer.Exit(diagnosis_report.exit_code(findings, facts))


def _check_options(pod: str, node: str, bundle: Path | None, json: bool) -> None:
    """End the command where its options do not go together."""
    if pod and node:
        runs.stop("either --pod or --node\n    remedy: a pod's node is looked at with the pod")
    if bundle and (pod or node or json):
        runs.stop("--bundle has the whole site\n    remedy: leave --pod, --node and --json out")
    if bundle and not bundle.is_dir():
        runs.stop(f"{bundle}: there is no such folder\n    remedy: make it, then run again")


def _check_target(pod: str, node: str, facts: Facts) -> None:
    """End the command where the cluster has no such pod or node."""
    pods = {entry.key for entry in facts.cluster.pods}
    nodes = {entry.node for entry in facts.hosts}
    if facts.cluster.error:
        return
    if pod and pod not in pods:
        runs.stop(f"there is no pod {pod}\n    remedy: name it as NAMESPACE/NAME")
    if node and node not in nodes:
        runs.stop(f"there is no node {node}\n    remedy: one of {', '.join(sorted(nodes))}")


def recorded(inventory: str, data: list[str] | None) -> Recording:
    """What a site says now. Ends the command where nobody could be asked."""
    from gpuboot.diagnose.site_recording import from_json

    until = {UNTIL: str(time.time() + WITHIN_S)}
    tries = ["--data", f"ssh_connect_retries={RETRIES}"]
    options = [*tries, *runs.options(data)]
    result = runs.pyinfra(inventory, DEPLOY, options, until, capture_output=True)
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    return from_json(result.answer)


def write_bundle(
    folder: Path, recording: Recording, findings: Sequence[Finding], facts: Facts
) -> int:
    """Pack what a diagnosis reads, the last reports and the settings; the exit code.

    Passwords, tokens and keys are taken out.
    """
    from gpuboot.diagnose import bundle as archive

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    files = archive.contents(recording, findings, facts, when)
    paths: list[Path] = []
    if not ending.try_write(
        lambda: paths.append(archive.write(folder, recording.site, files)), folder
    ):
        return NOT_WRITTEN
    typer.echo(f"causes found: {len(findings)}; look through it before you send it", err=True)
    print(paths[0])
    return OK
