"""A run of pyinfra as a page and as the last lines on a terminal, from the content of run.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuboot.verify.report.page import page


def run_html(run: Mapping[str, Any], proof: bool) -> str:
    """The page: how the run ended, what failed and why, what changed, how long phases took.

    + run: as run.json has it
    + proof: the run has verified as well, so verify.html stands beside it
    """
    return page(
        "run.html.j2",
        run=run,
        proof=proof,
        failed=list(_failed(run)),
        changed=[(host, it["changed"]) for host, it in run["hosts"].items() if it["changed"]],
        current=run["phases"][-1]["name"] if run["phases"] else "",
    )


def told(run: Mapping[str, Any]) -> Iterator[str]:
    """What failed, each host's first cause once, for a terminal."""
    failed = list(_failed(run))
    if not failed:
        yield "the run was interrupted; run it again, and it continues"
    for hosts, error in failed:
        yield f"failed on {', '.join(hosts)}: {error['operation']}"
        yield from (f"    {line}" for line in error["message"].splitlines())


def _failed(run: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    """What failed, and on which hosts: told once where several hosts say the same."""
    alike: dict[tuple[str, str], list[str]] = {}
    for host, found in run["hosts"].items():
        for error in found["errors"]:
            alike.setdefault((error["operation"], error["message"]), []).append(host)
    for (operation, message), hosts in alike.items():
        yield hosts, {"operation": operation, "message": message}
