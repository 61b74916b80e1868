"""Links of the cluster as a whole: targets, rules, Alertmanager, dashboards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from gpuboot.verify.checks.remedies import CLUSTER, NOT_SCRAPED, Remedies
from gpuboot.verify.evidence import Metrics, Rule, Target
from gpuboot.verify.findings import Finding, FindingBuilder

T = TypeVar("T")
# Prometheus Operator lists the kubelets for Prometheus, and that of a node that is gone for up to
# three minutes: pkg/kubelet/controller.go, resyncPeriod
_KUBELET = "kubelet"


def evaluate(
    metrics: Metrics,
    grafana: bool,
    remedies: Remedies = CLUSTER,
    cluster_nodes: Collection[str] = (),
) -> list[Finding]:
    """Judge all cluster-wide links.

    + grafana: whether the settings have Grafana
    + remedies: what a person can do about findings, at this kind of site
    + cluster_nodes: names of the cluster's nodes; () for not known
    """
    active = metrics.targets
    if active and cluster_nodes:
        names = {"", *cluster_nodes}
        active = tuple(item for item in active if item.job != _KUBELET or item.node in names)
    findings = [
        *_evaluate_answer(active, "targets", "all targets up", metrics, targets, remedies),
        *_evaluate_answer(metrics.rules, "rules", "rules loaded", metrics, rules, remedies),
        *alertmanager(metrics, remedies),
    ]
    return findings + (dashboards(metrics, remedies) if grafana else [])


def _evaluate_answer(
    answer: T | None,
    link: str,
    check: str,
    metrics: Metrics,
    verdicts: Callable[[T, FindingBuilder, Remedies], list[Finding]],
    remedies: Remedies,
) -> list[Finding]:
    builder = FindingBuilder(link, check)
    if answer is None:
        return [builder.unknown(*_no_answer(metrics, remedies))]
    return verdicts(answer, builder, remedies)


def _no_answer(metrics: Metrics, remedies: Remedies) -> tuple[str, str]:
    error = metrics.errors.get("prometheus", "no answer")
    return metrics.explained("prometheus", error, remedies.prometheus)


def targets(active: Sequence[Target], builder: FindingBuilder, remedies: Remedies) -> list[Finding]:
    """Judge whether every active target is up; each red one is named."""
    if not active:
        return [builder.failed("Prometheus has no target at all", remedies.prometheus)]
    red = [target for target in active if target.health != "up"]
    if not red:
        return [builder.passed(f"{len(active)} target{'s'[: len(active) != 1]} up")]
    return [_red(target, remedies) for target in red]


def _red(target: Target, remedies: Remedies) -> Finding:
    builder = FindingBuilder("targets", "all targets up", target.node)
    subject = f"{target.job} {target.url}"
    if target.health == "unknown":
        return builder.unknown(f"{subject} has not been scraped yet", NOT_SCRAPED)
    return builder.failed(f"{subject} is {target.health}: {target.error}", remedies.target_down)


def rules(loaded: Sequence[Rule], builder: FindingBuilder, remedies: Remedies) -> list[Finding]:
    """Judge whether there are rules, and every one could be evaluated."""
    if not loaded:
        return [builder.failed("Prometheus has loaded no rule", remedies.rules_missing)]
    broken = [rule for rule in loaded if rule.health == "err"]
    if broken:
        return [
            builder.failed(f"{rule.name}: {rule.error}", remedies.rule_broken) for rule in broken
        ]
    return [builder.passed(f"{len(loaded)} rule{'s'[: len(loaded) != 1]}, none with an error")]


def alertmanager(metrics: Metrics, remedies: Remedies) -> list[Finding]:
    """Judge whether Prometheus knows an Alertmanager, and that one is ready."""
    builder = FindingBuilder("alertmanager", "Alertmanager reachable")
    if metrics.alertmanagers is None:
        return [builder.unknown(*_no_answer(metrics, remedies))]
    if not metrics.alertmanagers:
        reason = "Prometheus has no Alertmanager to send alerts to"
        return [builder.failed(*metrics.explained("alertmanager", reason, remedies.alertmanager))]
    if not metrics.alertmanager_ready:
        reason = f"Alertmanager: {metrics.errors.get('alertmanager', 'not ready')}"
        return [builder.failed(*metrics.explained("alertmanager", reason, remedies.alertmanager))]
    count = len(metrics.alertmanagers)
    number = "1 Alertmanager" if count == 1 else f"{count} Alertmanagers"
    return [builder.passed(f"Prometheus sends alerts to {number}, ready")]


def dashboards(metrics: Metrics, remedies: Remedies) -> list[Finding]:
    """Judge whether Grafana answers, and has dashboards that draw GPU metrics."""
    builder = FindingBuilder("dashboards", "Grafana and GPU dashboards")
    if error := metrics.errors.get("grafana"):
        reason = f"Grafana does not answer: {error}"
        return [builder.failed(*metrics.explained("grafana", reason, remedies.grafana))]
    if metrics.dashboards is None:
        return [builder.unknown("dashboards could not be counted", remedies.grafana)]
    if metrics.dashboards == 0:
        reason = "Grafana has no dashboard with GPU metrics"
        return [builder.failed(reason, remedies.dashboards_missing)]
    return [builder.passed(f"Grafana answers, {metrics.dashboards} GPU dashboards")]
