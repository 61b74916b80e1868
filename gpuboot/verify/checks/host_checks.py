"""The links of `of_hosts` in the chain: what their commands printed on each host."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.verify.checks.one_file import CheckVerdict, HostCheck
from gpuboot.verify.checks.one_file_checks import HOST_CHECKS
from gpuboot.verify.devices import Host
from gpuboot.verify.findings import Finding, from_file

NAMES = frozenset(check.link.name for check in HOST_CHECKS)


def evaluate(host: Host) -> list[Finding]:
    """The findings of one host; none of links that do not concern it, or that nobody asked for."""
    if host.error or host.outputs is None:
        return []
    return [finding for check in HOST_CHECKS for finding in _of(check, host)]


def _of(check: HostCheck, host: Host) -> Iterable[Finding]:
    output = (host.outputs or {}).get(check.link.name)
    verdicts: Iterable[CheckVerdict]
    if output is None:
        remedy = f"run it there by hand: `{check.command}`"
        verdicts = [
            CheckVerdict(
                status="unknown", detail="the host did not answer this check", remedy=remedy
            )
        ]
    else:
        verdicts = check.evaluate({gpu.uuid: gpu.name for gpu in host.working}, output)
    return [from_file(check.link, verdict, host.node) for verdict in verdicts]


def without(links: Iterable[str], host: Host) -> list[str]:
    """A chain's links without those of files that do not concern a host."""
    concerned = {finding.link for finding in evaluate(host)}
    silent = NAMES - concerned
    return [link for link in links if link not in silent]
