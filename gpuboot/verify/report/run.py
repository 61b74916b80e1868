"""A run of pyinfra as a page and as the last lines on a terminal, from the content of run.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuboot.config.exit_codes import COMPLETED_CODES, FAILED
from gpuboot.plan import Change
from gpuboot.plan.terminal import change_lines
from gpuboot.verify.report.page import page
from gpuboot.verify.report.timeline import table as timeline
from gpuboot.verify.report.timeline.longest_chain import link_name, longest_links

_LONGEST = 8  # links of the longest chain that are named
_LONG_S = 10.0  # of a run after which a person wonders where the time went
# Rows of the table of times that are no phases, in the words of docs/runs.md.
BEFORE = {
    "start-up": "Python and pyinfra start; inventory and settings are read",
    "connect": "SSH connections",
    "prepare": "what pyinfra prepares beside these",
    "read hosts": "preflight reads the hosts",
    "compare": "all operations are compared with the hosts",
    "rehearse": "package managers tell what they would change",
}
_PROOF_ALONE = "verify.py"  # has shown its own report


def run_html(run: Mapping[str, Any], proof: bool) -> str:
    """The page: how the run ended, what failed and why, where its time went, what changed.

    + run: as run.json has it
    + proof: the run has verified as well, so verify.html stands beside it
    """
    return page(
        "run.html.j2",
        run=run,
        proof=proof,
        rows=timeline.rows(run),
        before=BEFORE,
        longest=[(link_name(item), item) for item in longest_links(run, _LONGEST)],
        failed=list(_failed(run)),
        done=_is_finished(run),
        changed=[
            (host, _details(run, host))
            for host, outcome in run["hosts"].items()
            if outcome["changed"]
        ],
        current=run["phases"][-1]["name"] if run["phases"] else "",
    )


def _is_finished(run: Mapping[str, Any]) -> bool:
    """Whether a run did all that it had to do, however well what it found is."""
    short = run["exit"] == FAILED and bool(run.get("shortfalls")) and not any(_failed(run))
    return short or run["exit"] in COMPLETED_CODES


def _details(run: Mapping[str, Any], host: str) -> list[tuple[str, list[str]]]:
    """Each operation that changed something on a host, and the lines that tell what."""
    recorded = {
        " | ".join(dict.fromkeys((item["phase"], item["name"]))): item["changed"].get(host, {})
        for item in run.get("operations", ())
    }
    details = []
    for name in run["hosts"][host]["changed"]:
        items = recorded.get(name, {})
        lines = [
            line for change in items.get("changes", ()) for line in change_lines(_change(change))
        ]
        details.append((name, lines))
    return details


def _change(recorded: Mapping[str, Any]) -> Change:
    return Change(**{**recorded, "diff": tuple(recorded.get("diff", ()))})


def last_lines(run: Mapping[str, Any], resume: str = "", verbose: bool = False) -> list[str]:
    """The last lines of a run: what failed or changed, and of a long one where its time went.

    + run: as run.json has it
    + resume: the command that goes on; "" where it is not known, and pyinfra sums up what is done
    + verbose: tell where the time went in any case
    """
    is_full_run = run.get("deploy") != _PROOF_ALONE
    changed = any(host["changed"] for host in run["hosts"].values())
    is_finished = _is_finished(run)
    long = (changed or not is_finished) and run["seconds"] > _LONG_S
    lines = list(timeline.lines(run)) if verbose or (long and is_full_run) else []
    if not is_finished:
        return [*lines, *verdict(run, resume)]
    lines += run.get("shortfalls", ())
    return [*lines, summary(run)] if resume and is_full_run else lines


def verdict(run: Mapping[str, Any], resume: str = "") -> Iterator[str]:
    """The last lines of a run that did not end well: what failed, why, and how to go on.

    + run: as run.json has it; + resume: the command that goes on; "" where it is not known
    """
    failed = list(_failed(run))
    if not failed:
        last = next(iter(run.get("operations", ())[-1:]), None)
        during = f" during {last['phase']} | {last['name']}" if last else ""
        yield f"the run was interrupted{during}; run it again, and it continues"
    for hosts, error in failed:
        yield f"failed on {', '.join(hosts)}: {error['operation']}"
        yield from _cause(error["message"])
    yield from run.get("shortfalls", ())
    yield from _extent(run)
    if resume:
        yield f"go on with: {resume}"


def summary(run: Mapping[str, Any]) -> str:
    """The last line of a run that ended well."""
    changed = [host for host, outcome in run["hosts"].items() if outcome["changed"]]
    operations = {name for outcome in run["hosts"].values() for name in outcome["changed"]}
    if not changed:
        longest_note = f" (most of it: {timeline.longest(run)})" if run["seconds"] > _LONG_S else ""
        return f"done in {run['seconds']:.0f} s: nothing had to be changed{longest_note}"
    return (
        f"done in {run['seconds']:.0f} s: {_operations(len(operations))} changed something on "
        f"{', '.join(changed)}"
    )


def _operations(count: int) -> str:
    return f"{count} {'operation' if count == 1 else 'operations'}"


def _cause(message: str) -> Iterator[str]:
    """A message of cause and remedy, each where it is looked for."""
    cause, _, remedy = message.partition("remedy:")
    lines = [line.strip() for line in cause.strip().rstrip(";").splitlines() if line.strip()]
    for number, line in enumerate(lines or ["it said nothing; the run's output tells more"]):
        yield f"    {'cause:' if number == 0 else '':<8} {line.removeprefix('gpuboot: ')}"
    remedy = remedy.strip() or "fix what it says, then run again: the run goes on from there"
    for number, line in enumerate(remedy.splitlines()):
        yield f"    {'remedy:' if number == 0 else '':<8} {line.strip()}"


def _extent(run: Mapping[str, Any]) -> Iterator[str]:
    """How far the run came: what was not tried, what it changed, and what it did not touch."""
    hosts_by_phases: dict[tuple[str, ...], list[str]] = {}
    for host, outcome in run["hosts"].items():
        if phases := dict.fromkeys(name.split(" | ")[0] for name in outcome.get("not_tried", ())):
            hosts_by_phases.setdefault(tuple(phases), []).append(host)
    for names, hosts in hosts_by_phases.items():
        yield f"not tried on {', '.join(hosts)}: the rest of {', '.join(names)}"
    counts = {host: len(outcome["changed"]) for host, outcome in run["hosts"].items()}
    changed = [f"{host} ({_operations(count)})" for host, count in counts.items() if count]
    yield f"changed by this run before it ended: {', '.join(changed) or 'nothing'}"
    if untouched := [
        host for host, state in run["hosts"].items() if not state["changed"] + state["failed"]
    ]:
        yield f"untouched: {', '.join(untouched)}"


def _failed(run: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    """What failed, and on which hosts: told once where several hosts say the same."""
    hosts_by_error: dict[tuple[str, str], list[str]] = {}
    for host, outcome in run["hosts"].items():
        for error in outcome["errors"]:
            hosts_by_error.setdefault((error["operation"], error["message"]), []).append(host)
    for (operation, message), hosts in hosts_by_error.items():
        yield hosts, {"operation": operation, "message": message}
