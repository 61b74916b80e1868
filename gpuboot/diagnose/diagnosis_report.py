"""A diagnosis for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from gpuboot.diagnose.cause_model import Finding, Sighting, to_json
from gpuboot.diagnose.facts import Facts

SCHEMA = 1
_MOST_PLACES = 4  # of a cause that are shown in full
_MOST_COMMANDS = 3
_LONGEST = 220


def unread(facts: Facts) -> list[str]:
    """What could not be looked at, a line each. A silent host is a cause, and not named here."""
    cluster = facts.cluster
    lines = [f"the cluster could not be asked: {cluster.error}"] if cluster.error else []
    lines += [f"{host.node}: its answer was cut off" for host in facts.read if not host.state]
    return lines + [
        f"{path.partition('?')[0]}: {text[:_LONGEST]}"
        for path, text in cluster.errors.items()
        if not cluster.error and path != "targets"
    ]


def exit_code(findings: Sequence[Finding], facts: Facts) -> int:
    """0 nothing found, 1 causes found, 2 nothing found and something could not be looked at."""
    if findings:
        return 1
    return 2 if unread(facts) or not facts.read else 0


def document(findings: Sequence[Finding], facts: Facts, site: str, took_s: float) -> str:
    """The diagnosis as JSON."""
    content = {
        "schema": SCHEMA,
        "site": site,
        "seconds": round(took_s, 1),
        "hosts": {host.node: host.error for host in facts.hosts},
        "unread": unread(facts),
        "causes": to_json(findings, facts.leader),
    }
    return json.dumps(content, indent=1)


def text(findings: Sequence[Finding], facts: Facts, site: str, took_s: float) -> str:
    """The diagnosis for a terminal."""
    count = len(findings)
    noun = "no cause" if not count else "1 cause" if count == 1 else f"{count} causes"
    read = f"{len(facts.read)} of {len(facts.hosts)} hosts"
    cluster = "without the cluster" if facts.cluster.error else "the cluster"
    lines = [f"{site}: {noun} found in {took_s:.0f} s ({read}, {cluster})"]
    for number, finding in enumerate(findings, start=1):
        lines += ["", *_cause(number, finding, facts.leader)]
    if missing := unread(facts):
        lines += ["", "not looked at:", *(f"  {line}" for line in missing)]
    return "\n".join(lines)


def _cause(number: int, finding: Finding, leader: str) -> Iterator[str]:
    yield f"{number}. {finding.cause.id} ({finding.confidence.word}): {finding.cause.meaning}"
    if finding.follows:
        yield f"   follows from: {', '.join(finding.follows)}"
    for item in finding.sightings[:_MOST_PLACES]:
        yield from _sighting(item)
    if (remaining := len(finding.sightings) - _MOST_PLACES) > 0:
        yield f"   and in {remaining} more places (see --json)"
    yield f"   remedy: {finding.cause.remedy}"
    for place, command in finding.commands(leader)[:_MOST_COMMANDS]:
        yield f"   {place or 'leader'}$ {command}"
    yield f"   more: docs/causes.md#{finding.cause.id}"


def _sighting(item: Sighting) -> Iterator[str]:
    yield f"   {item.location}:"
    for line in item.evidence:
        short = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
        yield f"     - {short}"
