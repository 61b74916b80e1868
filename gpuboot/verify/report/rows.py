"""Makes a report of findings: a row for each GPU and MIG device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpuboot.verify.evidence import Gpu, Host, Instance
from gpuboot.verify.findings import PHYSICAL_LINKS, ROW_LINKS, Finding, Status, worst
from gpuboot.verify.gaps import with_gaps
from gpuboot.verify.report.model import GpuRow, InstanceRow, Report


def build(
    cluster: str,
    started: str,
    seconds: float,
    hosts: Sequence[Host],
    findings: Sequence[Finding],
    demanded: Mapping[str, Sequence[str]],
    **more: Any,
) -> Report:
    """A report of these findings, with one row for each GPU the hosts have.

    + demanded: node -> the links that each of its GPUs has to pass before it is proven
    + more: the other fields of `Report`
    """
    findings = with_gaps(findings, hosts, demanded)
    rows = tuple(
        _row(host, gpu, findings, tuple(demanded[host.node])) for host in hosts for gpu in host.gpus
    )
    return Report(
        cluster=cluster,
        started=started,
        seconds=seconds,
        findings=tuple(findings),
        gpus=rows,
        **more,
    )


def _row(host: Host, gpu: Gpu, findings: Sequence[Finding], demanded: tuple[str, ...]) -> GpuRow:
    devices = [item.uuid for item in gpu.instances]
    links = _links(host, {gpu.uuid, *devices} - {""}, findings)
    instances = tuple(
        InstanceRow(
            uuid=item.uuid,
            profile=item.profile,
            gi=item.gi,
            ci=item.ci,
            demanded=demanded,
            links=_device_links(host, gpu, item, findings),
        )
        for item in gpu.instances
    )
    return GpuRow(
        node=host.node,
        uuid=gpu.uuid,
        pci=gpu.pci,
        name=gpu.name,
        memory_mib=gpu.memory_mib,
        demanded=demanded,
        links=links,
        instances=instances,
    )


def _device_links(
    host: Host, gpu: Gpu, item: Instance, findings: Sequence[Finding]
) -> dict[str, Status]:
    """A MIG device's own links, above the physical ones of its GPU."""
    below = _links(host, {gpu.uuid}, [one for one in findings if one.link in PHYSICAL_LINKS])
    return below | _links(
        host, {item.uuid}, [one for one in findings if one.link not in PHYSICAL_LINKS]
    )


def _links(host: Host, uuids: Collection[str], findings: Sequence[Finding]) -> dict[str, Status]:
    """What was found for the GPU itself; where that is nothing, what was found for its node."""
    links: dict[str, Status] = {}
    for link in ROW_LINKS:
        of_link = [item for item in findings if item.node == host.node and item.link == link]
        matching = [item for item in of_link if item.gpu_uuid in uuids] or [
            item for item in of_link if item.gpu_uuid is None
        ]
        if matching:
            links[link] = worst(matching)
    return links
