"""Links of the cluster as a whole: targets, rules, Alertmanager, dashboards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from gpuboot.verify.checks.model import Finding, Scribe
from gpuboot.verify.evidence import Metrics, Rule, Target

T = TypeVar("T")
POD_REMEDY = "see the pods of the monitoring namespace and their logs"


def judge(metrics: Metrics, grafana: bool) -> list[Finding]:
    """All cluster-wide links.

    + grafana: whether Grafana is part of what was asked for
    """
    findings = [
        *_known(metrics.targets, "targets", "all targets up", metrics, targets),
        *_known(metrics.rules, "rules", "rules loaded", metrics, rules),
        *alertmanager(metrics),
    ]
    return findings + (dashboards(metrics) if grafana else [])


def _known(
    answer: T | None,
    link: str,
    check: str,
    metrics: Metrics,
    verdicts: Callable[[T, Scribe], list[Finding]],
) -> list[Finding]:
    scribe = Scribe(link, check)
    if answer is None:
        return [scribe.unknown(metrics.errors.get("prometheus", "no answer"), POD_REMEDY)]
    return verdicts(answer, scribe)


def targets(found: Sequence[Target], scribe: Scribe) -> list[Finding]:
    """Every active target is up; each red one is named."""
    if not found:
        return [scribe.failed("Prometheus has no target at all", POD_REMEDY)]
    red = [target for target in found if target.health != "up"]
    if not red:
        return [scribe.passed(f"{len(found)} targets up")]
    return [
        Scribe("targets", "all targets up", target.node).failed(
            f"{target.job} {target.url} is {target.health}: {target.error or 'not scraped yet'}",
            "see the pod behind it; kubeadm's own components listen on 127.0.0.1 unless told "
            "otherwise (monitoring.control_plane_targets)",
        )
        for target in red
    ]


def rules(found: Sequence[Rule], scribe: Scribe) -> list[Finding]:
    """There are rules, and every one could be evaluated."""
    if not found:
        remedy = "see the PrometheusRule objects and the operator's log"
        return [scribe.failed("Prometheus has loaded no rule", remedy)]
    broken = [rule for rule in found if rule.health == "err"]
    remedy = "correct the expression in the PrometheusRule that defines it"
    if broken:
        return [scribe.failed(f"{rule.name}: {rule.error}", remedy) for rule in broken]
    return [scribe.passed(f"{len(found)} rules, none with an error")]


def alertmanager(metrics: Metrics) -> list[Finding]:
    """Prometheus knows an Alertmanager, and that one is ready."""
    scribe = Scribe("alertmanager", "Alertmanager reachable")
    if metrics.alertmanagers is None:
        return [scribe.unknown(metrics.errors.get("prometheus", "no answer"), POD_REMEDY)]
    if not metrics.alertmanagers:
        return [scribe.failed("Prometheus has no Alertmanager to send alerts to", POD_REMEDY)]
    if not metrics.alertmanager_ready:
        why = metrics.errors.get("alertmanager", "not ready")
        return [scribe.failed(f"Alertmanager: {why}", POD_REMEDY)]
    return [scribe.passed(f"{len(metrics.alertmanagers)} in use, ready")]


def dashboards(metrics: Metrics) -> list[Finding]:
    """Grafana answers, and dashboards that draw GPU metrics are there for it."""
    scribe = Scribe("dashboards", "Grafana and GPU dashboards")
    if error := metrics.errors.get("grafana"):
        return [scribe.failed(f"Grafana does not answer: {error}", POD_REMEDY)]
    if metrics.dashboards is None:
        return [scribe.unknown("dashboards could not be counted", POD_REMEDY)]
    if metrics.dashboards == 0:
        remedy = "run deploys/site.py, which brings the GPU dashboards as ConfigMaps"
        return [scribe.failed("Grafana has no dashboard with GPU metrics", remedy)]
    return [scribe.passed(f"Grafana answers, {metrics.dashboards} GPU dashboards")]
