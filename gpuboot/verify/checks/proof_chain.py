"""Evaluates the whole chain: evidence in, findings out."""

from __future__ import annotations

from collections.abc import Iterable

from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.verify import levels
from gpuboot.verify.checks import (
    alerting_checks,
    cluster_checks,
    control_plane_checks,
    field_checks,
    health_checks,
    host_checks,
    isolation,
    kubernetes_checks,
    metrics_checks,
    monitoring_checks,
    monitoring_objects,
    node_metrics,
    operating_system,
    service_checks,
)
from gpuboot.verify.checks.metrics_checks import Limits
from gpuboot.verify.devices import Host
from gpuboot.verify.evidence import Evidence
from gpuboot.verify.findings import (
    GPU_LINKS,
    NOT_REACHED,
    ROW_LINKS,
    Finding,
    FindingBuilder,
)
from gpuboot.verify.gaps import gaps

# a sample may miss so many of its intervals, and is no older than a minute on any site
_MISSED_INTERVALS = 8
_MIN_SAMPLE_AGE_S = 60.0
FIX_FIRST = "fix that one first"  # the remedy for a link that no check reached


def evaluate(evidence: Evidence, settings: Settings) -> list[Finding]:
    """Evaluate every link of every GPU on every node, then the cluster's, in the chain's order.

    Links that the settings' level does not have are not in it.
    """
    findings: list[Finding] = []
    for host in evidence.hosts:
        of_node = _node_findings(host, evidence, settings)
        links = [link for link in _links(host, evidence, settings) if link in GPU_LINKS]
        findings += of_node + gaps(host, of_node, links, NOT_REACHED, FIX_FIRST)
        findings += isolation.evaluate(host, evidence) + service_checks.evaluate(host, evidence)
    if not evidence.hosts:
        builder = FindingBuilder("pci", "GPU nodes")
        remedy = "set gpus = N for the hosts that have GPUs, in the inventory"
        findings.append(builder.not_covered("the inventory promises no GPU on any host", remedy))
    if settings.monitoring.enabled:
        findings += _monitoring(evidence, settings)
        findings += monitoring_objects.evaluate(evidence, settings.monitoring.grafana)
        findings += node_metrics.evaluate(evidence)
        findings += alerting_checks.evaluate(evidence.metrics, evidence.test_alert)
    findings += cluster_checks.evaluate(evidence.answers)
    findings += control_plane_checks.evaluate(evidence, settings)
    return ordered(levels.within(findings, settings.verify.level))


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the chain's order, host by host, and what concerns no GPU at the end."""
    order = {link: position for position, link in enumerate(ROW_LINKS)}
    return sorted(
        findings,
        key=lambda item: (
            item.link not in order,
            item.node,
            item.gpu_uuid or "",
            order.get(item.link, 0),
        ),
    )


def metrics_findings(evidence: Evidence, settings: Settings) -> list[Finding]:
    """The findings that metrics decide; `runner` waits until they pass."""
    findings = [f for host in evidence.hosts for f in _metric_findings(host, evidence, settings)]
    if settings.monitoring.enabled:
        findings += _monitoring(evidence, settings)
        findings += monitoring_objects.evaluate(evidence, settings.monitoring.grafana)
        findings += alerting_checks.in_transit(evidence.metrics)
    return levels.within(findings, settings.verify.level)


def _monitoring(evidence: Evidence, settings: Settings) -> list[Finding]:
    grafana = settings.monitoring.grafana
    return monitoring_checks.evaluate(evidence.metrics, grafana, cluster_nodes=evidence.nodes)


def limits(settings: Settings, host: Host | None = None) -> Limits:
    """The metric checks' limits, as the settings have them. + host: for what is said of it alone"""
    slices = settings.gpu_operator.time_slices if settings.gpu_operator.enabled else 1
    return Limits(
        monitoring=settings.monitoring.enabled,
        max_age_s=max(
            _MIN_SAMPLE_AGE_S, _MISSED_INTERVALS * seconds(settings.exporter.scrape_interval)
        ),
        interval_s=settings.exporter.interval_ms / 1000,
        slices=(host.replicas if host else None) or slices,
        strategy=settings.gpu_operator.mig_strategy,
        every_sensor=settings.exporter.collectors_file is None,
        dcgm_on_hosts=settings.dcgm == "host",
    )


def _node_findings(host: Host, evidence: Evidence, settings: Settings) -> list[Finding]:
    findings = operating_system.evaluate(host, settings.runtime.mode)
    bounds = limits(settings, host)
    if host.error:
        # what Kubernetes knows of it may be worse than that the host could not be read
        return findings + [
            item
            for item in kubernetes_checks.allocatable(
                host, evidence, bounds.slices, bounds.strategy
            )
            if item.status == "fail"
        ]
    findings += host_checks.evaluate(host)
    operator = settings.gpu_operator.enabled
    findings += kubernetes_checks.evaluate(host, evidence, bounds.slices, bounds.strategy, operator)
    # not waited for, as metrics are: what health values say does not pass within a minute
    findings += health_checks.evaluate(host, evidence, bounds)
    return findings + _metric_findings(host, evidence, settings)


def _metric_findings(host: Host, evidence: Evidence, settings: Settings) -> list[Finding]:
    return [
        *metrics_checks.evaluate(host, evidence, limits(settings, host)),
        *field_checks.evaluate(host, evidence),
    ]


def required_links(evidence: Evidence, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Node -> the links that each of its GPUs has to pass before it is proven.

    Those are what level and settings demand, without what does not concern a host.
    """
    return {host.node: tuple(_links(host, evidence, settings)) for host in evidence.hosts}


def _links(host: Host, evidence: Evidence, settings: Settings) -> list[str]:
    links = levels.gpu_links(settings)
    if len(host.gpus) < 2:
        links = [link for link in links if link != "collective"]  # there is nobody to reduce with
    if len(evidence.hosts) < 2:
        links = [link for link in links if link != "internode"]
    available_links = health_checks.without(links, host, evidence, limits(settings, host))
    return host_checks.without(available_links, host)
