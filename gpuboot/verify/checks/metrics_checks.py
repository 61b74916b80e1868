"""Links of the metrics: the exporter, Prometheus, and who a series says holds the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuboot.verify.checks.attribution import attribution
from gpuboot.verify.checks.exporter_checks import exporter
from gpuboot.verify.checks.limits import (
    Limits,
    describe,
    monitored_devices,
    unidentified_series,
)
from gpuboot.verify.checks.remedies import NOT_SCRAPED
from gpuboot.verify.devices import Device, Host
from gpuboot.verify.evidence import Evidence, Reading
from gpuboot.verify.findings import Finding, FindingBuilder

__all__ = ["Limits", "evaluate", "exporter", "prometheus"]


def evaluate(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """The exporter's link of one node, and Prometheus' two where monitoring is on."""
    findings = exporter(host, evidence, limits)
    if limits.monitoring:
        findings += prometheus(host, evidence, limits)
        findings += attribution(host, evidence, limits)
    return findings


def prometheus(host: Host, evidence: Evidence, limits: Limits) -> list[Finding]:
    """Judge whether the target is up, and each device has a fresh series with its node."""
    builder = FindingBuilder("prometheus", "Prometheus series = nvidia-smi", host.node)
    if not host.uuids:
        return []
    series = evidence.metrics.series
    if series is None or evidence.metrics.targets is None:
        reason = evidence.metrics.errors.get("prometheus", "Prometheus gave no answer")
        remedy = limits.remedies.prometheus
        return [builder.unknown(*evidence.metrics.explained("prometheus", reason, remedy))]
    targets = [t for t in evidence.metrics.targets if "dcgm" in t.job and t.node == host.node]
    if not targets:
        reason = "no dcgm-exporter scrape target has this node"
        remedy = limits.remedies.target_missing
        if any(scrape.node == host.node for scrape in evidence.metrics.exporters):
            return [builder.failed(reason, remedy)]
        return [builder.failed(*evidence.metrics.explained("exporter", reason, remedy))]
    if len(targets) > 1:
        reason = f"{len(targets)} scrape targets of dcgm-exporter"
        return [builder.failed(reason, limits.remedies.target_twice)]
    if targets[0].health == "unknown":
        return [builder.unknown("its scrape target has not been scraped yet", NOT_SCRAPED)]
    if targets[0].health != "up":
        detail = f"scrape target is {targets[0].health}: {targets[0].error}"
        return [builder.failed(detail, limits.remedies.exporter_down)]
    return [
        _series(device, series, host.node, limits, builder) for device in monitored_devices(host)
    ]


def _series(
    device: Device, series: Sequence[Reading], node: str, limits: Limits, builder: FindingBuilder
) -> Finding:
    uuid, key = device.uuid, device.key
    if key is None:
        return unidentified_series(builder, uuid)
    readings = [reading for reading in series if reading.key == key]
    if not readings:
        detail = f"no series of {describe(device)} in Prometheus"
        return builder.failed(detail, limits.remedies.series_missing, uuid)
    foreign_nodes = sorted({reading.node for reading in readings} - {node})
    if foreign_nodes:
        reason = f"its series say node {foreign_nodes[0] or '(none)'}"
        return builder.failed(reason, limits.remedies.series_node, uuid)
    holders = Counter((reading.pod, reading.share) for reading in readings)
    if twice := [holder for holder, count in holders.items() if count > 1]:
        reason = f"{holders[twice[0]]} series of the same metric{_of_holder(*twice[0])}"
        return builder.failed(reason, limits.remedies.target_twice, uuid)
    age = min((r.age_s for r in readings if r.age_s is not None), default=None)
    if age is None:
        return builder.unknown(
            "Prometheus does not say how old the sample is", "verify again", uuid
        )
    if age > limits.max_age_s:
        reason = f"last sample is {age:.0f} s old, allowed {limits.max_age_s:g}"
        return builder.failed(reason, limits.remedies.target_stale, uuid)
    return builder.passed(f"target up, sample {age:.1f} s old, node {node}", uuid)


def _of_holder(pod: str, share: tuple[str, ...]) -> str:
    """What series name, for people. + share: as of `Reading`"""
    titles = ("container", "share", "job")
    parts = [f"pod {pod}"] * bool(pod)
    parts += [f"{title} {name}" for title, name in zip(titles, share, strict=False) if name]
    return f", of {', '.join(parts)}" if parts else ""
