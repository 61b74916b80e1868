"""The way of alerts: Alertmanager's and the Prometheus operator's answers, and what they mean.

The answers are recorded from Alertmanager 0.34.0 and prometheus-operator in a cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuboot.cluster.api import ClusterError
from gpuboot.config.settings import Alertmanager
from gpuboot.verify import alert_probe
from gpuboot.verify.alert_path import (
    AlertPath,
    parse_heartbeat,
    parse_silences,
    parse_stopped,
)
from gpuboot.verify.checks import alerting_checks
from gpuboot.verify.evidence import Metrics, Rule
from tests.unit.evidence import of, only

SILENCED_BY = "44e7fd5c-4a02-4052-bf26-f88c30541de3"
RULES = (
    Rule(name="Watchdog", health="ok", group="general.rules", labels={"severity": "none"}),
    Rule(name="GPULost", health="ok", group="gpuboot-gpu", labels={"severity": "critical"}),
    Rule(name="NodeGone", health="ok", group="gpuboot-node", labels={"severity": "critical"}),
    Rule(name="GPUHot", health="ok", group="gpuboot-gpu", labels={"severity": "warning"}),
)


def alerts(*silenced_by: str) -> Any:
    status = {"inhibitedBy": [], "mutedBy": [], "silencedBy": [*silenced_by], "state": "active"}
    return [
        {
            "annotations": {"summary": "Always fires"},
            "endsAt": "2026-11-25T07:16:48.363Z",
            "fingerprint": "45f82f02c83ad90c",
            "receivers": [{"name": "watchdog"}],
            "startsAt": "2026-11-25T06:38:18.363Z",
            "status": status,
            "updatedAt": "2026-11-25T07:12:48.367Z",
            "labels": {
                "alertname": "Watchdog",
                "cluster": "lab",
                "prometheus": "monitoring/kube-prometheus-stack-prometheus",
                "severity": "none",
            },
        }
    ]


def silence(*matchers: tuple[str, str, str], state: str = "active") -> Any:
    """A silence as GET /api/v2/silences has it. + matchers: label, operator, value"""
    return {
        "id": SILENCED_BY,
        "status": {"state": state},
        "updatedAt": "2026-11-25T07:19:49.046Z",
        "comment": "maintenance of the hall",
        "createdBy": "ops",
        "endsAt": "2026-11-25T09:00:00.000Z",
        "startsAt": "2026-11-25T07:19:49.046Z",
        "matchers": [
            {
                "isEqual": not operator.startswith("!"),
                "isRegex": operator.endswith("~"),
                "name": name,
                "value": value,
            }
            for name, operator, value in matchers
        ],
    }


def objects(**spec: Any) -> Any:
    item = {"metadata": {"name": "stack-prometheus"}, "spec": {"replicas": 1, **spec}}
    return {"kind": "PrometheusList", "items": [item]}


def path(**changes: Any) -> AlertPath:
    return replace(AlertPath(heartbeat=parse_heartbeat(alerts())), **changes)


def metrics(**changes: Any) -> Metrics:
    return Metrics(rules=RULES, alert_path=path(**changes))


def test_a_heartbeat_in_alertmanager_passes() -> None:
    assert only(alerting_checks.evaluate(metrics()), "pass")
    assert alerting_checks.in_transit(metrics()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heartbeat": None}, "does not reach Alertmanager"),
        ({"heartbeat": parse_heartbeat([])}, "does not reach Alertmanager"),
        ({"stopped": tuple(parse_stopped(objects(paused=True)))}, "stack-prometheus is paused"),
        ({"stopped": tuple(parse_stopped(objects(replicas=0)))}, "has 0 replicas"),
        ({"rejected": ("pagerduty",)}, "pagerduty refused every message"),
    ],
)
def test_a_way_that_is_cut_fails(changes: dict[str, Any], words: str) -> None:
    assert words in only(alerting_checks.evaluate(metrics(**changes)), "fail").detail


def test_a_suppressed_heartbeat_names_the_silence_and_its_author() -> None:
    silences = parse_silences([silence(("alertname", "=~", ".+"))])
    heartbeat = parse_heartbeat(alerts(SILENCED_BY))
    failures = of(alerting_checks.evaluate(metrics(silences=silences, heartbeat=heartbeat)), "fail")
    assert len(failures) == 2  # the heartbeat, and every critical alert
    for item in failures:
        assert '{alertname=~".+"} by ops until 2026-11-25T09:00' in item.detail
        assert SILENCED_BY in item.remedy


@pytest.mark.parametrize(
    "matchers",
    [
        [("severity", "=", "critical")],
        [("alertname", "!=", "Watchdog")],
        [("alertname", "!~", "Watchdog|InfoInhibitor")],
        [("cluster", "=", "lab")],
        [("severity", "=~", "critical|warning"), ("cluster", "=~", "la.*")],
        [("node", "=~", ".*")],
        [("UUID", "!=", "GPU-1")],
    ],
)
def test_a_silence_of_every_critical_alert_fails(matchers: list[tuple[str, str, str]]) -> None:
    silences = parse_silences([silence(*matchers)])
    assert (
        "no critical alert leaves"
        in only(alerting_checks.evaluate(metrics(silences=silences)), "fail").detail
    )


def test_two_silences_that_mute_all_critical_alerts_fail() -> None:
    silences = [silence(("alertname", "=", name)) for name in ("GPULost", "NodeGone")]
    assert only(alerting_checks.evaluate(metrics(silences=parse_silences(silences))), "fail")
    finding = only(alerting_checks.evaluate(metrics(silences=parse_silences(silences[:1]))), "pass")
    assert "silenced: GPULost" in finding.detail


@pytest.mark.parametrize(
    "matchers",
    [
        [("severity", "=", "warning")],
        [("node", "=", "gpu1")],
        [("alertname", "=~", "GPU.*"), ("node", "=~", "gpu[12]")],
        [("cluster", "=", "another")],
        [("alertname", "=~", "GPUHot")],
        [("alertname", "=~", "(?P<x")],
    ],
)
def test_a_silence_of_some_alerts_passes(matchers: list[tuple[str, str, str]]) -> None:
    silences = parse_silences([silence(*matchers)])
    assert only(alerting_checks.evaluate(metrics(silences=silences)), "pass")


def test_a_silence_that_has_ended_is_none() -> None:
    expired = [silence(("alertname", "=~", ".+"), state=state) for state in ("expired", "pending")]
    assert parse_silences(expired) == ()


def test_a_way_that_nobody_could_read_is_unknown() -> None:
    silent = Metrics(errors={"alert path": "no answer within 20 s"})
    assert only(alerting_checks.evaluate(silent), "unknown").detail == "no answer within 20 s"
    without_rule = Metrics(rules=RULES[1:], alert_path=AlertPath())
    assert "no rule Watchdog" in only(alerting_checks.evaluate(without_rule), "unknown").detail


class FakeAlertmanager:
    """Alertmanager behind the API server: pages of metrics, one after the other."""

    def __init__(self, *counters: str) -> None:
        self.counters = list(counters)
        self.posted: list[Any] = []

    def get(self, path: str) -> bytes:
        page = self.counters.pop(0) if len(self.counters) > 1 else self.counters[0]
        if not page:
            raise ClusterError("GET /metrics: 503")
        return page.encode()

    def send(self, method: str, path: str, body: Any) -> None:
        self.posted += body


def page(requests: int, failed: int) -> str:
    name = "alertmanager_notification_requests"
    return (
        f'{name}_total{{integration="email"}} 7\n{name}_failed_total{{integration="email"}} 0\n'
        f'{name}_total{{integration="slack"}} {requests}\n'
        f'{name}_failed_total{{integration="slack"}} {failed}\n'
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 100_000, 20))
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr("time.sleep", lambda _: None)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("pages", "error"),
    [
        ((page(3, 1), page(3, 1), page(4, 1)), ""),
        ((page(3, 1), page(5, 3)), "slack refused 2 messages"),
        ((page(3, 1),), "Alertmanager sent no message to slack"),
        (("",), "GET /metrics: 503"),
    ],
)
def test_a_test_alert_is_delivered_when_its_receiver_took_a_message(
    pages: tuple[str, ...], error: str
) -> None:
    cluster = FakeAlertmanager(*pages)
    settings = Alertmanager.model_validate({"slack": {"webhook": {"file": "webhook"}}})
    delivery = alert_probe.deliver_test_alert(cluster, "", settings, "warning", "lab")
    assert delivery.receiver == "slack"
    assert delivery.error.startswith(error)
    assert bool(delivery.error) == bool(error)
    finding = alerting_checks.evaluate(metrics(), delivery)[-1]
    assert finding.status == ("fail" if error else "pass")
    assert [item["labels"]["severity"] for item in cluster.posted] == ["warning"] * bool(pages[0])


def test_a_test_alert_without_a_receiver_fails_and_is_not_sent() -> None:
    cluster = FakeAlertmanager("")
    delivery = alert_probe.deliver_test_alert(cluster, "", Alertmanager(), "critical", "lab")
    assert (delivery.receiver, delivery.error) == ("null", "no receiver is set")
    assert cluster.posted == []
    assert "set a receiver" in alerting_checks.evaluate(metrics(), delivery)[-1].remedy


class FakeApi:
    """Answers by the end of a path but for those that fail, and counts requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.failing: set[str] = set()
        self.alerts: Any = []

    def json(self, path: str) -> Any:
        name = path.rpartition("/")[2]
        self.requests.append(name)
        if name in self.failing:
            raise ClusterError(f"GET {path}: 503")
        silences = [silence(("alertname", "=", "GPULost"))]
        return {"alerts": self.alerts, "silences": silences}.get(name, objects(paused=True))

    def query(self, query: str) -> list[Any]:
        self.requests.append("refusals")
        return []


def test_only_the_heartbeat_is_read_again_while_a_run_waits_for_it() -> None:
    api: Any = FakeApi()
    reader = alert_probe.AlertPathReader(api, "monitoring", "/proxy", api)
    api.failing.add("silences")
    with pytest.raises(ClusterError):
        reader.read()
    api.failing.clear()
    first = reader.read()
    assert (first.heartbeat, len(first.silences), len(first.stopped)) == (None, 1, 2)
    api.requests.clear()
    api.alerts = alerts()
    second = reader.read()
    assert api.requests == ["alerts"]
    assert second == replace(first, heartbeat=parse_heartbeat(alerts()))
