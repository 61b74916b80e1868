"""Links of GPUs that nobody looked at: each is a finding of its own, and no GPU is proven by it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.findings import PHYSICAL_LINKS, ROW_LINKS, Finding, FindingBuilder

_NOT_EXAMINED = "nobody looked at it"
_VERIFY_AGAIN = "verify again"


def with_gaps(
    findings: Sequence[Finding],
    hosts: Sequence[Host],
    required_links: Mapping[str, Sequence[str]],
    detail: str = _NOT_EXAMINED,
    remedy: str = _VERIFY_AGAIN,
) -> tuple[Finding, ...]:
    """The findings, and one for each demanded link of a GPU about which they say nothing.

    + required_links: node -> links of its GPUs
    + detail, remedy: why nobody looked, and what to do
    """
    return (
        *findings,
        *(
            finding
            for host in hosts
            for finding in gaps(host, findings, required_links[host.node], detail, remedy)
        ),
    )


def gaps(
    host: Host, findings: Sequence[Finding], links: Sequence[str], detail: str, remedy: str
) -> list[Finding]:
    """A finding for each of these links of a host's GPUs about which there is none."""
    of_host = [item for item in findings if item.node == host.node]
    evaluated = {(item.link, item.gpu_uuid) for item in of_host}
    return [
        FindingBuilder(link, ROW_LINKS[link], host.node).not_covered(detail, remedy, uuid)
        for link in links
        for uuid in dict.fromkeys(subject for gpu in host.gpus for subject in subjects(gpu, link))
        if (link, uuid) not in evaluated and (link, None) not in evaluated
    ]


def subjects(gpu: Gpu, link: str) -> Collection[str | None]:
    """The UUIDs that a link is about: the GPU's, or above the driver those of its MIG devices.

    None for a GPU that has told no UUID: it is about its node.
    """
    if gpu.instances and link not in PHYSICAL_LINKS:
        return tuple(item.uuid for item in gpu.instances)
    return (gpu.uuid or None,)
