"""Makes a report of findings: a row for each GPU and MIG device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuboot.hosts.mig_devices import Instance
from gpuboot.verify.devices import Gpu, Host
from gpuboot.verify.findings import PHYSICAL_LINKS, ROW_LINKS, Finding, Status, worst
from gpuboot.verify.gaps import with_gaps
from gpuboot.verify.report.report_model import GpuRow, InstanceRow, Report

_NOT_SEEN = ("nobody saw this GPU, which the inventory promises", "verify again when it is there")


def build(
    cluster: str,
    started: str,
    seconds: float,
    hosts: Sequence[Host],
    findings: Sequence[Finding],
    required_links: Mapping[str, Sequence[str]],
    **report_fields: Any,
) -> Report:
    """A report of these findings, with one row for each GPU that hosts have or should have.

    + required_links: node -> the links that each of its GPUs has to pass before it is proven
    + report_fields: the other fields of `Report`
    """
    findings = with_gaps(findings, hosts, required_links)
    hosts = [_with_unseen(host) for host in hosts]
    findings = with_gaps(findings, hosts, required_links, *_NOT_SEEN)
    rows = tuple(
        _row(host, gpu, findings, tuple(required_links[host.node]))
        for host in hosts
        for gpu in host.gpus
    )
    return Report(
        cluster=cluster,
        started=started,
        seconds=seconds,
        findings=tuple(findings),
        gpus=rows,
        **report_fields,
    )


def _with_unseen(host: Host) -> Host:
    """The host with those of its GPUs that the inventory promises and nobody saw."""
    return replace(host, gpus=(*host.gpus, *[Gpu(pci="")] * (host.expected_gpus - len(host.gpus))))


def _row(
    host: Host, gpu: Gpu, findings: Sequence[Finding], required_links: tuple[str, ...]
) -> GpuRow:
    devices = [item.uuid for item in gpu.instances]
    links = _links(host, {gpu.uuid, *devices} - {""}, findings)
    instances = tuple(
        InstanceRow(
            uuid=item.uuid,
            profile=item.profile,
            gi=item.gi,
            ci=item.ci,
            demanded=required_links,
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
        demanded=required_links,
        links=links,
        instances=instances,
    )


def _device_links(
    host: Host, gpu: Gpu, item: Instance, findings: Sequence[Finding]
) -> dict[str, Status]:
    """A MIG device's own links, above the physical ones of its GPU."""
    below = _links(
        host, {gpu.uuid}, [finding for finding in findings if finding.link in PHYSICAL_LINKS]
    )
    return below | _links(
        host, {item.uuid}, [finding for finding in findings if finding.link not in PHYSICAL_LINKS]
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
