"""`gpuboot diagnose`: from symptoms to causes, each with evidence and a command to type."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gpuboot.cli import runs
from gpuboot.diagnose import UNTIL

if TYPE_CHECKING:
    from gpuboot.diagnose.recording import Recording

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
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    data: runs.Data = None,
) -> None:
    """Find out why a cluster, a node or a pod does not work. Changes nothing; takes a minute.

    Exit code: 0 no cause found, 1 causes found, 2 could not look.
    """
    from gpuboot.diagnose import facts as all_facts
    from gpuboot.diagnose import model, report
    from gpuboot.diagnose.causes import TABLE

    if pod and node:
        runs.stop("either --pod or --node\n    remedy: a pod's node is looked at with the pod")
    started = time.monotonic()
    recording = recorded(inventory, data)
    facts = all_facts.of(recording)
    known_names = (
        {entry.key for entry in facts.cluster.pods}
        if pod
        else {entry.node for entry in facts.hosts}
    )
    if (target := pod or node) and target not in known_names and not facts.cluster.error:
        remedy = "name it as NAMESPACE/NAME" if pod else f"one of {', '.join(sorted(known_names))}"
        runs.stop(f"there is no {'pod' if pod else 'node'} {target}\n    remedy: {remedy}")
    findings = model.diagnose(facts, TABLE)
    if target:
        findings = model.findings_about(findings, facts, pod, node)
    format_report = report.document if json else report.text
    print(format_report(findings, facts, recording.site, time.monotonic() - started))
    raise typer.Exit(report.exit_code(findings, facts))


def recorded(inventory: str, data: list[str] | None) -> Recording:
    """What a site says now. Ends the command where nobody could be asked."""
    from gpuboot.diagnose.recording import from_json

    until = {UNTIL: str(time.time() + WITHIN_S)}
    tries = ["--data", f"ssh_connect_retries={RETRIES}"]
    options = [*tries, *runs.options(data)]
    result = runs.pyinfra(inventory, DEPLOY, options, until, capture_output=True)
    if not result.answer:
        runs.stop(result.output.rstrip() or "pyinfra told nothing")
    return from_json(result.answer)
