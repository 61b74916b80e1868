"""Links about what gpuboot adds to the monitoring stack: all of it exists and is in force."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import yaml

from gpuboot.cluster.objects import Claim, amount
from gpuboot.monitoring.rules import RULES_INFO_METRIC
from gpuboot.monitoring.stack_objects import ExpectedObjects, ObservedObjects
from gpuboot.verify.evidence import Evidence, Metrics
from gpuboot.verify.findings import Finding, FindingBuilder

RULE_GROUP_PREFIX = "gpuboot-"  # of our rule groups' names
DEPLOY_REMEDY = "run deploys/site.py, which applies it"
_KINDS = {
    "PrometheusRule": ("rules", "our rules' object"),
    "ConfigMap": ("dashboards", "our dashboards' ConfigMaps"),
    "NetworkPolicy": ("policies", "our NetworkPolicies"),
}
_MATCHER = re.compile(r'^\s*"?(\w+)"?\s*(=~|!~|!=|=)\s*"?(.*?)"?\s*$')


def evaluate(evidence: Evidence, grafana: bool = True) -> list[Finding]:
    """What the settings add to the charts' own objects; [] where that is not checked.

    + grafana: whether the settings have Grafana
    """
    expected, metrics = evidence.expected_objects, evidence.metrics
    if expected is None:
        return []
    findings = [*_rule_groups(expected, metrics), *_state_metrics(expected, metrics)]
    findings += _alertmanager(expected, metrics)
    if evidence.observed_objects is None:
        reason = evidence.objects_error or "it was not read"
        return [*findings, *_unread(expected, reason)]
    return [
        *findings,
        *_objects(expected, evidence.observed_objects, grafana),
        *_claims(expected, evidence.observed_objects),
    ]


def _rule_groups(expected: ExpectedObjects, metrics: Metrics) -> Iterator[Finding]:
    """Every group of ours is loaded with all of its rules, just these, and they were evaluated."""
    builder = FindingBuilder("rules", "our rules loaded")
    if metrics.rules is None:
        return  # the rules' own finding tells that there is no answer
    loaded: dict[str, list[str]] = {}
    for rule in metrics.rules:
        loaded.setdefault(rule.group, []).append(rule.name)
    differences = [
        f"{group}: {len(loaded.get(group, []))} of {len(names)} rules"
        for group, names in expected.groups.items()
        if sorted(loaded.get(group, [])) != sorted(names)
    ]
    differences += [
        f"{group}: still loaded"
        for group in loaded
        if group.startswith(RULE_GROUP_PREFIX) and group not in expected.groups
    ]
    stamps = {rule.labels.get("digest") for rule in metrics.rules if rule.name == RULES_INFO_METRIC}
    if not differences and stamps - {expected.rules_digest}:
        differences.append("other versions of these rules")
    if differences:
        remedy = "see the Prometheus operator's log: it leaves out what it cannot read; then "
        yield builder.failed(
            f"not loaded as expected: {'; '.join(differences)}", remedy + DEPLOY_REMEDY
        )
        return
    waiting = sorted(
        {r.name for r in metrics.rules if r.group in expected.groups and r.health == "unknown"}
    )
    count = sum(map(len, expected.groups.values()))
    if not count:
        return
    if waiting:
        detail = f"{len(waiting)} of {count} not evaluated yet: {', '.join(waiting[:4])}"
        yield builder.unknown(detail, "wait for the groups' interval (a minute)")
        return
    yield builder.passed(f"{count} rules of gpuboot in {len(expected.groups)} groups")


def _state_metrics(expected: ExpectedObjects, metrics: Metrics) -> Iterator[Finding]:
    """Judge the target kube-state-metrics: without it rules on allocation have no series."""
    if not expected.state_metrics or metrics.targets is None:
        return
    builder = FindingBuilder("targets", "kube-state-metrics")
    targets = [item for item in metrics.targets if item.job == "kube-state-metrics"]
    if not targets:
        remedy = "see its ServiceMonitor and its pod in the monitoring namespace"
        yield builder.failed("Prometheus has no target kube-state-metrics", remedy)
    elif all(item.health == "up" for item in targets):
        yield builder.passed("kube-state-metrics is up")
    # a target that is down has its finding already


def _alertmanager(expected: ExpectedObjects, metrics: Metrics) -> Iterator[Finding]:
    """Judge whether Alertmanager has our receivers, routes and inhibitions; others may exist."""
    builder = FindingBuilder("alertmanager", "our receivers and routes")
    if not expected.alertmanager or not metrics.alertmanager_ready:
        return  # that it is not ready is a finding of its own
    if metrics.alertmanager_config is None:
        reason = metrics.errors.get("alertmanager config", "no answer")
        yield builder.unknown(reason, "see Alertmanager's pod")
        return
    running = yaml.safe_load(metrics.alertmanager_config) or {}
    missing_parts = [
        f"{kind}: {'; '.join(missing[:4])}"
        for kind, missing in (
            ("receivers", _missing(_receivers(expected.alertmanager), _receivers(running))),
            ("routes", _missing(_routes(expected.alertmanager), _routes(running))),
            ("inhibitions", _missing(_inhibitions(expected.alertmanager), _inhibitions(running))),
        )
        if missing
    ]
    if missing_parts:
        remedy = "see the logs of the Prometheus operator and of Alertmanager: a configuration "
        remedy += f"that they refuse leaves the last one in force; then {DEPLOY_REMEDY}"
        yield builder.failed(f"missing in what it runs with: {'. '.join(missing_parts)}", remedy)
        return
    names = ", ".join(_receivers(expected.alertmanager))
    yield builder.passed(f"receivers {names}; {len(_routes(expected.alertmanager))} routes")


def _missing(expected: list[str], running: list[str]) -> list[str]:
    return [item for item in expected if item not in running]


def _receivers(config: Mapping[str, Any]) -> list[str]:
    """Name of each receiver with the ways it has, e.g. `oncall (pagerduty)`."""
    names = []
    for item in config.get("receivers") or []:
        integrations = sorted(
            key.removesuffix("_configs") for key in item if key.endswith("_configs")
        )
        names.append(
            f"{item['name']} ({', '.join(integrations)})" if integrations else str(item["name"])
        )
    return names


def _routes(config: Mapping[str, Any]) -> list[str]:
    """Each route with what it matches, the first one matching everything."""

    def walk(route: Mapping[str, Any], inherited: str) -> Iterator[str]:
        receiver = str(route.get("receiver") or inherited)
        yield f"{{{_matchers(route.get('matchers'))}}} to {receiver}"
        for child in route.get("routes") or []:
            yield from walk(child, receiver)

    return list(walk(config["route"], "")) if config.get("route") else []


def _inhibitions(config: Mapping[str, Any]) -> list[str]:
    return [
        f"{{{_matchers(rule.get('source_matchers'))}}} mutes "
        f"{{{_matchers(rule.get('target_matchers'))}}} by {', '.join(rule.get('equal') or [])}"
        for rule in config.get("inhibit_rules") or []
    ]


def _matchers(texts: list[str] | None) -> str:
    """Matchers as Alertmanager rewrites them: without blanks, and sorted."""
    parts = [_MATCHER.match(text) for text in texts or []]
    return ", ".join(sorted("".join(part.groups()) for part in parts if part))


def _unread(expected: ExpectedObjects, reason: str) -> Iterator[Finding]:
    """A finding for each link whose objects could not be read."""
    kinds = {kind for kind, *_ in expected.objects}
    checks = [check for kind, check in _KINDS.items() if kind in kinds]
    for link, check in [*checks, *([("storage", "volumes")] if expected.claims else [])]:
        yield FindingBuilder(link, check).unknown(reason, "see the API server, then verify again")


def _objects(
    expected: ExpectedObjects, observed: ObservedObjects, grafana: bool
) -> Iterator[Finding]:
    """Every object of ours exists as the settings say, and none is left over."""
    for kind, (link, check) in _KINDS.items():
        digests = {key: digest for key, digest in expected.objects.items() if key[0] == kind}
        observed_digests = {
            key: digest for key, digest in observed.objects.items() if key[0] == kind
        }
        differences = [
            f"{key[2]} is missing" for key in sorted(digests.keys() - observed_digests.keys())
        ]
        differences += [
            f"{key[2]} is not as the settings say"
            for key in sorted(digests.keys() & observed_digests.keys())
            if digests[key] != observed_digests[key]
        ]
        differences += [
            f"{key[2]} is left over: the settings no longer have it"
            for key in sorted(observed_digests.keys() - digests.keys())
        ]
        builder = FindingBuilder(link, check)
        if differences:
            yield builder.failed("; ".join(differences), DEPLOY_REMEDY)
        elif digests:
            names = ", ".join(key[2] for key in sorted(digests))
            description = f"{kind} as the settings say: {names}"
            if link == "policies" and observed.enforcement:
                description += f"; {observed.enforcement}"
            is_checked = grafana or link != "dashboards"
            yield builder.passed(
                description
                if is_checked
                else f"{description}; monitoring.grafana is off, so no Grafana was asked"
            )


def _claims(expected: ExpectedObjects, observed: ObservedObjects) -> Iterator[Finding]:
    """Every volume that the settings ask for is bound, and large enough."""
    for prefix, size in expected.claims.items():
        builder = FindingBuilder("storage", f"volume {prefix.rstrip('-')}")
        claims = [claim for claim in observed.claims if claim.name.startswith(prefix)]
        if not claims:
            remedy = "see the StatefulSets of the monitoring namespace; " + DEPLOY_REMEDY
            yield builder.failed("no PersistentVolumeClaim asks for it", remedy)
        for claim in claims:
            yield _claim(builder, claim, size)


def _claim(builder: FindingBuilder, claim: Claim, size: str) -> Finding:
    if claim.phase != "Bound":
        remedy = "see `kubectl describe pvc` and the provisioner's log"
        return builder.failed(f"{claim.name} is {claim.phase or 'not bound'}", remedy)
    actual, expected = _amount(claim.size), _amount(size)
    if actual is not None and expected is not None and actual < expected:
        remedy = "docs/storage.md tells how a volume grows"
        return builder.failed(f"{claim.name} has {claim.size}, expected {size}", remedy)
    return builder.passed(f"{claim.name} is bound, {claim.size}")


def _amount(quantity: str) -> Decimal | None:
    """A size such as `50Gi`; None for one that is written in another way."""
    try:
        return amount(quantity)
    except ValueError:
        return None
