"""The link `alerting`: alerts go from Prometheus' rules through Alertmanager to receivers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpuboot.config.problems import join_first
from gpuboot.verify.alert_path import (
    HEARTBEAT,
    REFUSALS_WINDOW,
    AlertDelivery,
    AlertPath,
    Matcher,
    Silence,
)
from gpuboot.verify.evidence import Metrics, Rule
from gpuboot.verify.findings import Finding, FindingBuilder

_BUILDER = FindingBuilder("alerting", "alerts reach their receivers")
_OWN_GROUPS = "gpuboot-"
_NAMES_SHOWN = 4
_STOPPED = "whoever set this may know why; in the object, set `paused` to false, or `replicas` to 1"
_NO_HEARTBEAT = (
    f"see Prometheus' page Status > Rules for {HEARTBEAT}, and its log for errors of sending alerts"
)
_RECEIVER_REMEDY = (
    "see Alertmanager's log for the receiver's answer, then correct its address or key"
)


def evaluate(
    metrics: Metrics, delivery: AlertDelivery | None = None, remedy: str = _NO_HEARTBEAT
) -> list[Finding]:
    """What is known of the way of alerts.

    + delivery: what became of a test alert; None: nobody asked for one
    """
    path = metrics.alert_path
    if path is None:
        return [_BUILDER.unknown(metrics.errors.get("alert path", "no answer"), remedy)]
    findings = [*_stopped(path), *_heartbeat(path, metrics.rules), *_rejected(path)]
    findings += _silenced(path, metrics.rules or ())
    if not findings:
        findings.append(_BUILDER.passed(_passes(path, metrics.rules or ())))
    return findings + ([_delivery(delivery)] if delivery else [])


def in_transit(metrics: Metrics) -> list[Finding]:
    """The findings that time can change: after a start the first alerts are on their way."""
    path = metrics.alert_path
    if path is None or path.heartbeat is None:
        return evaluate(metrics)
    return []


def _stopped(path: AlertPath) -> Iterable[Finding]:
    return [_BUILDER.failed(text, _STOPPED) for text in path.stopped]


def _heartbeat(path: AlertPath, rules: Sequence[Rule] | None) -> Iterable[Finding]:
    if path.heartbeat is None:
        if rules is not None and not any(rule.name == HEARTBEAT for rule in rules):
            detail = f"Prometheus has no rule {HEARTBEAT}, by which the way of alerts is tried"
            yield _BUILDER.unknown(detail, "run deploys/site.py, which brings the stack's rules")
            return
        detail = f"{HEARTBEAT}, which always fires, does not reach Alertmanager"
        yield _BUILDER.failed(detail, _NO_HEARTBEAT)
    elif path.heartbeat.suppressed_by:
        names = ", ".join(path.heartbeat.suppressed_by)
        detail = f"Alertmanager suppresses {HEARTBEAT} by {names}: no message leaves it"
        silences = [item for item in path.silences if item.id in path.heartbeat.suppressed_by]
        remedy = end_of(silences[0]) if silences else "see Alertmanager's page of silences"
        yield _BUILDER.failed(f"{detail}{_titles(silences)}", remedy)


def _titles(silences: Sequence[Silence]) -> str:
    return "".join(f"; {title_of(item)}" for item in silences)


def title_of(silence: Silence) -> str:
    """What it holds back, whose it is and until when."""
    matchers = ", ".join(map(str, silence.matchers))
    comment = f" ({silence.comment})" if silence.comment else ""
    return f"silence {silence.id} {{{matchers}}} by {silence.author} until {silence.ends}{comment}"


def end_of(silence: Silence) -> str:
    """How a person ends a silence."""
    return f"end it, or ask {silence.author}: Alertmanager, Silences, {silence.id}"


def _rejected(path: AlertPath) -> Iterable[Finding]:
    for integration in path.rejected:
        detail = f"{integration} refused every message of the last {REFUSALS_WINDOW}"
        yield _BUILDER.failed(detail, _RECEIVER_REMEDY)


def _silenced(path: AlertPath, rules: Sequence[Rule]) -> Iterable[Finding]:
    """Silences that leave no critical alert of gpuboot's."""
    critical = _critical(rules)
    muted = {silence: muted_by(silence, critical, path) for silence in path.silences}
    names = {name for alerts in muted.values() for name in alerts}
    if critical and names == {rule.name for rule in critical}:
        muting = [silence for silence, alerts in muted.items() if alerts]
        detail = f"no critical alert leaves Alertmanager{_titles(muting)}"
        yield _BUILDER.failed(detail, end_of(muting[0]))


def _critical(rules: Sequence[Rule]) -> list[Rule]:
    return [
        rule
        for rule in rules
        if rule.group.startswith(_OWN_GROUPS) and rule.labels.get("severity") == "critical"
    ]


def muted_by(silence: Silence, rules: Sequence[Rule], path: AlertPath) -> list[str]:
    """Names of those rules of which a silence mutes every alert, whatever GPU it is about."""
    external = {
        name: value
        for name, value in (path.heartbeat.labels if path.heartbeat else {}).items()
        if name not in ("alertname", "severity")
    }
    return [
        rule.name
        for rule in rules
        if all(
            _matches(matcher, {**external, **rule.labels, "alertname": rule.name})
            for matcher in silence.matchers
        )
    ]


def _matches(matcher: Matcher, labels: Mapping[str, str]) -> bool:
    """Whether a matcher is true of an alert with these labels.

    A label that differs from alert to alert (a GPU, a node) is taken to have a value that nobody
    named: only a matcher of all values is true of it.
    """
    value = labels.get(matcher.name, "a value that nobody named")
    if matcher.is_regex:
        try:
            equal = re.fullmatch(matcher.value, value) is not None
        except re.error:
            return False  # Go's syntax beyond Python's: which alerts it mutes is not known
    else:
        equal = value == matcher.value
    return equal == matcher.is_equal


def _delivery(delivery: AlertDelivery) -> Finding:
    if not delivery.error:
        detail = f"{delivery.receiver} took a {delivery.severity} test alert"
        return _BUILDER.passed(f"{detail} after {delivery.seconds:.0f} s")
    detail = f"a {delivery.severity} test alert was not delivered: {delivery.error}"
    remedy = f"set a receiver of {delivery.severity} alerts (alertmanager in the settings)"
    if delivery.receiver != "null":
        remedy = (
            f"{_RECEIVER_REMEDY}; within alertmanager.group_interval of a test none is sent again"
        )
    return _BUILDER.failed(detail, remedy)


def _passes(path: AlertPath, rules: Sequence[Rule]) -> str:
    critical = _critical(rules)
    muted = sorted({name for item in path.silences for name in muted_by(item, critical, path)})
    detail = f"{HEARTBEAT} goes from rule to Alertmanager, and nothing suppresses it"
    if muted:
        detail += f"; silenced: {join_first(muted, _NAMES_SHOWN, ', ')}"
    return detail
