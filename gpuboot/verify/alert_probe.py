"""Reads the way of alerts from rules to receivers, and sends a test alert along it.

Alertmanager lists an alert for as long as Prometheus sends it again, so a rule that always fires
(`Watchdog` of kube-prometheus-stack) shows that rules are evaluated and alerts are sent. What left
Alertmanager is in its counters: `alertmanager_notification_requests_total` counts each request to
a receiver after its answer, `…_failed_total` those that were refused (prometheus/alertmanager,
notify/retry_stage.go).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.config.settings import Alertmanager
from gpuboot.config.settings.alerting import Severity
from gpuboot.config.settings.base import seconds
from gpuboot.monitoring.alerting.receivers import NONE, receiver_of
from gpuboot.verify.alert_path import (
    REFUSALS_WINDOW,
    AlertDelivery,
    AlertPath,
    parse_heartbeat,
    parse_silences,
    parse_stopped,
)
from gpuboot.verify.concurrently import concurrently
from gpuboot.verify.prometheus import Prometheus, Sample, parse_exposition

TEST_ALERT = "GpubootTestAlert"
_REQUESTS = "alertmanager_notification_requests_total"
_FAILED_REQUESTS = "alertmanager_notification_requests_failed_total"
_ALL_REFUSED = (
    f"sum by (integration) (increase({_FAILED_REQUESTS}[{REFUSALS_WINDOW}])) > 0 and "
    f"sum by (integration) (increase({_FAILED_REQUESTS}[{REFUSALS_WINDOW}])) >= "
    f"sum by (integration) (increase({_REQUESTS}[{REFUSALS_WINDOW}]))"
)
_OPERATOR_API = "/apis/monitoring.coreos.com/v1/namespaces"
_DELIVERY_S = 30.0  # beside the group's wait
_POLL_S = 1.0


class AlertPathReader:
    """Reads the way of alerts: all of it once, and then only what a wait can change."""

    def __init__(
        self, cluster: Cluster, namespace: str, alertmanager: str, prometheus: Prometheus
    ) -> None:
        """`namespace`: of monitoring; `alertmanager`: its Service in the API server's proxy."""
        self._cluster, self._prometheus = cluster, prometheus
        self._operator = f"{_OPERATOR_API}/{namespace}"
        self._alertmanager = alertmanager
        self._path: AlertPath | None = None

    def read(self) -> AlertPath:
        """The way at this moment: the heartbeat, and all else as the first answer had it.

        Raises `ClusterError`, `PrometheusError`, KeyError.
        """
        if self._path is None:
            self._path = self._read_all()
        else:
            self._path = replace(self._path, heartbeat=parse_heartbeat(self._alerts()))
        return self._path

    def _alerts(self) -> Any:
        return self._cluster.json(f"{self._alertmanager}/api/v2/alerts")

    def _read_all(self) -> AlertPath:
        json = self._cluster.json
        questions: list[Callable[[], Any]] = [
            self._alerts,
            partial(json, f"{self._alertmanager}/api/v2/silences"),
            partial(self._prometheus.query, _ALL_REFUSED),
            partial(json, f"{self._operator}/prometheuses"),
            partial(json, f"{self._operator}/alertmanagers"),
        ]
        alerts, silences, rejected, *managed = concurrently(questions)
        return AlertPath(
            stopped=tuple(text for answer in managed for text in parse_stopped(answer)),
            heartbeat=parse_heartbeat(alerts),
            silences=parse_silences(silences),
            rejected=tuple(sorted(sample.labels["integration"] for sample in rejected)),
        )


@dataclass(frozen=True)
class _Counters:
    """Requests to receivers of one integration: all that were answered, and the refused ones."""

    requests: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[str, float] = field(default_factory=dict)

    def accepted(self, integration: str) -> float:
        return self.requests.get(integration, 0.0) - self.rejected.get(integration, 0.0)


def parse_counters(text: str) -> _Counters:
    """The counters of Alertmanager's page of metrics. Raises ValueError."""
    samples = list(parse_exposition(text))
    requests, rejected = (_by_integration(samples, name) for name in (_REQUESTS, _FAILED_REQUESTS))
    return _Counters(requests, rejected)


def _by_integration(samples: list[Sample], name: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for sample in samples:
        if sample.name == name:
            integration = sample.labels["integration"]
            sums[integration] = sums.get(integration, 0.0) + sample.value
    return sums


class _Api(Protocol):
    """What a test alert needs of `gpuboot.cluster.api.Cluster`."""

    def get(self, path: str) -> bytes: ...
    def send(self, method: str, path: str, body: Any) -> Any: ...


def deliver_test_alert(
    cluster: _Api, base: str, settings: Alertmanager, severity: Severity, site: str
) -> AlertDelivery:
    """Send a test alert to Alertmanager, and wait until a receiver took it.

    + base: path of Alertmanager in the API server's proxy
    + site: the cluster's name, for those who read the message
    """
    receiver = receiver_of(settings, severity)
    start = time.monotonic()
    if receiver == NONE:
        return AlertDelivery(severity=severity, receiver=NONE, error="no receiver is set")
    until = start + seconds(settings.group_wait) + _DELIVERY_S
    try:
        before = parse_counters(cluster.get(f"{base}/metrics").decode())
        cluster.send("POST", f"{base}/api/v2/alerts", [_test_alert(severity, site)])
        while True:
            counters = parse_counters(cluster.get(f"{base}/metrics").decode())
            is_delivered = counters.accepted(receiver) > before.accepted(receiver)
            if is_delivered or time.monotonic() > until:
                break
            time.sleep(_POLL_S)
    except (ClusterError, ValueError) as error:
        return AlertDelivery(severity=severity, receiver=receiver, error=str(error))
    elapsed = time.monotonic() - start
    refusals = counters.rejected.get(receiver, 0.0) - before.rejected.get(receiver, 0.0)
    failure = "" if is_delivered else _undelivered(receiver, refusals, elapsed)
    return AlertDelivery(severity=severity, receiver=receiver, seconds=elapsed, error=failure)


def _undelivered(receiver: str, refusals: float, elapsed: float) -> str:
    if refusals:
        return f"{receiver} refused {refusals:.0f} messages in {elapsed:.0f} s"
    return f"Alertmanager sent no message to {receiver} within {elapsed:.0f} s"


def _test_alert(severity: Severity, site: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    summary = f"Test alert of a verification of {site}: nothing is wrong"
    return {
        "labels": {
            "alertname": TEST_ALERT,
            "severity": severity,
            "cluster": site,
            "run": f"{now:%Y-%m-%dT%H:%M:%SZ}",  # each test is an alert of its own
        },
        "annotations": {"summary": summary, "description": "It ends by itself after two minutes."},
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(minutes=2)).isoformat(),
    }
