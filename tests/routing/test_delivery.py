"""What arrives at the receivers, and what is kept quiet, with a real Alertmanager."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from lab.alert_receivers import show
from tests.routing import running
from tests.routing.programs import amtool
from tests.routing.running import GROUP_INTERVAL_S, Site

_numbers = count(1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running.site(tmp_path_factory.mktemp("site")) as running_site:
        yield running_site


@pytest.fixture
def cluster() -> str:
    """A name that keeps each test's alerts apart from the others'."""
    return f"cluster-{next(_numbers)}-"


GPU = {"node": "gpu1", "gpu": "3", "UUID": "GPU-3", "component": "gpu", "gpu_action": "reset"}


def own_labels(name: str, severity: str, cluster: str, **labels: str) -> dict[str, str]:
    base = {"component": "gpu", "gpu_action": "none"}
    return {"alertname": name, "severity": severity, "cluster": cluster, **base, **labels}


def test_a_critical_alert_pages_and_its_end_closes_the_incident(site: Site, cluster: str) -> None:
    alert = own_labels("GPUXidFatal", "critical", cluster, **{**GPU, "pod": "train-0", "xid": "79"})
    annotations = {
        "summary": "XID 79 on GPU 3 of gpu1",
        "description": "It has fallen off the bus.",
        "runbook_url": "https://runbooks.example/GPUXidFatal.md",
    }
    site.post(alert, annotations=annotations)
    record = site.arrival("GPUXidFatal", cluster)
    assert record["receiver"] == "pagerduty"
    event = record["raw"]
    assert event["event_action"] == "trigger"
    check_payload(event["payload"], cluster, annotations)
    assert event["links"][0] == {"href": annotations["runbook_url"], "text": "Runbook"}
    assert event["links"][1]["href"].startswith("https://alertmanager.example/#/silences/new?")
    [alert_entry] = record["alerts"]
    assert alert_entry["labels"] == alert

    site.post(alert, resolved=True, annotations=annotations)
    end = site.arrival("GPUXidFatal", cluster, status="resolved")
    assert end["raw"]["event_action"] == "resolve"
    assert end["raw"]["dedup_key"] == event["dedup_key"]


def check_payload(payload: dict[str, Any], cluster: str, annotations: dict[str, str]) -> None:
    """PagerDuty's part of an event about XID 79."""
    title = f"GPUXidFatal on gpu1 ({cluster}): XID 79 on GPU 3 of gpu1"
    assert (payload["summary"], payload["source"]) == (title, "gpu1")
    assert (payload["severity"], payload["class"]) == ("critical", "GPUXidFatal")
    assert (payload["component"], payload["group"]) == ("gpu", cluster)
    details = payload["custom_details"]
    expected = {
        "node": "gpu1",
        "gpu": 3,
        "uuid": "GPU-3",
        "pod": "train-0",
        "gpu_action": "reset",
        "runbook": annotations["runbook_url"],
        "namespace": "none",
    }
    assert {name: details[name] for name in expected} == expected
    assert details["firing"].startswith("1 firing\n\nGPUXidFatal: XID 79 on GPU 3 of gpu1\n")
    assert (annotations["description"] in details["firing"], details["resolved"].strip()) == (
        True,
        "0 resolved",
    )


def test_warnings_of_a_node_are_one_slack_message(site: Site, cluster: str) -> None:
    alerts = [
        own_labels(
            "GPUThermalThrottle", "warning", cluster, node="gpu1", gpu=str(n), UUID=f"GPU-{n}"
        )
        for n in range(12)
    ]
    annotations = {"description": "margin < 5 & falling", "runbook_url": "docs/runbooks/x.md"}
    site.post(*alerts, annotations=annotations)
    record = site.arrival("GPUThermalThrottle", cluster)
    assert record["receiver"] == "slack"
    message = record["raw"]
    assert message["channel"] == "#gpu"
    [attachment] = message["attachments"]
    assert attachment["title"] == f"[WARNING x12] GPUThermalThrottle on gpu1 ({cluster})"
    assert attachment["title_link"].startswith("https://alertmanager.example/#/alerts?")
    assert attachment["color"] == "warning"
    text = attachment["text"]
    assert "margin &lt; 5 &amp; falling" in text
    assert "Runbook: docs/runbooks/x.md" in text  # no link: it is no address
    assert "<http://prometheus.example/graph?a=1&b=2|Query>" in text
    assert "… the first 10 of 12" in text
    assert [alert["labels"]["gpu"] for alert in record["alerts"]] == [
        *sorted(map(str, range(12)), key=lambda n: f"GPU-{n}")
    ][:10]

    site.post(*alerts[1:], annotations={"description": "still"})
    site.post(alerts[0], resolved=True)
    site.post(*alerts[1:], resolved=True)
    end = site.arrival("GPUThermalThrottle", cluster, status="resolved")
    [attachment] = end["raw"]["attachments"]
    assert attachment["title"].startswith("[RESOLVED] GPUThermalThrottle")
    assert attachment["color"] == "good"


def test_info_comes_by_mail_in_plain_text_and_html(site: Site, cluster: str) -> None:
    alert = own_labels("GPUQuotaFull", "info", cluster, namespace="ml")
    annotations = {
        "description": "used < hard <b>",
        "runbook_url": "https://r.example/GPUQuotaFull.md",
    }
    site.post(alert, annotations=annotations)
    record = site.arrival("GPUQuotaFull", cluster)
    mail = record["raw"]
    assert record["receiver"] == "email"
    assert mail["subject"] == f"[INFO] GPUQuotaFull in ml ({cluster})"
    assert mail["to"] == ["ops@example.com", "gpu@example.com"]
    assert "used < hard <b>" in mail["text"]
    assert "used &lt; hard &lt;b&gt;" in mail["html"]
    assert '<a href="https://r.example/GPUQuotaFull.md">Runbook</a>' in mail["html"]
    assert record["alerts"][0]["labels"] == alert
    site.post(alert, resolved=True)
    end = site.arrival("GPUQuotaFull", cluster, status="resolved")
    assert end["raw"]["subject"].startswith("[RESOLVED]")


def test_a_model_with_blanks_and_quotes_in_labels_survives(site: Site, cluster: str) -> None:
    odd = {"modelName": "NVIDIA H100 80GB HBM3", "pod": 'a"b\\c'}
    site.post(own_labels("GPULost", "critical", cluster, node="gpu1", **odd))
    record = site.arrival("GPULost", cluster)
    assert odd.items() <= record["alerts"][0]["labels"].items()
    assert " " not in record["raw"]["links"][0]["href"]


def test_alerts_of_others_without_our_labels_are_readable(site: Site, cluster: str) -> None:
    labels = {"alertname": "KubePodCrashLooping", "namespace": f"ns-{cluster}", "pod": "p"}
    site.post({**labels, "severity": "warning", "cluster": cluster})
    message = site.arrival("KubePodCrashLooping", cluster)["raw"]
    assert message["attachments"][0]["title"].startswith("[WARNING] KubePodCrashLooping in ns-")
    site.post({"alertname": "NoSeverity", "cluster": cluster})
    record = site.arrival("NoSeverity", cluster)
    assert (record["receiver"], record["raw"]["attachments"][0]["color"]) == ("slack", "warning")


def test_the_heartbeat_comes_again_and_again_and_never_resolves(site: Site) -> None:
    watchdog = {"alertname": "Watchdog", "severity": "none"}
    started = time.monotonic()
    site.post(watchdog)

    def beats() -> list[running.Record]:
        return [r for r in show.read(site.journal) if r["receiver"] == "watchdog"]

    while len(beats()) < 3:
        assert time.monotonic() - started < 10, "3 heartbeats of 1 s each"
        time.sleep(0.05)
    assert time.monotonic() - started < 5  # every second one left out: 4 s and more
    site.post(watchdog, resolved=True)
    time.sleep(1.5)
    assert {record["status"] for record in beats()} == {"firing"}


def test_a_silence_keeps_quiet(site: Site, cluster: str) -> None:
    amtool(
        f"--alertmanager.url={site.alertmanager}",
        *("silence", "add", "--author=me", "--comment=known", "--duration=1h"),
        *("alertname=GPUHealthWarn", f"cluster={cluster}"),
    )
    site.post(
        own_labels("GPUHealthWarn", "warning", cluster, node="gpu1"),
        own_labels("GPUHealthOther", "warning", cluster, node="gpu1"),
    )
    site.arrival("GPUHealthOther", cluster)
    time.sleep(GROUP_INTERVAL_S)
    assert not site.has_arrived("GPUHealthWarn", cluster)


def test_a_rotated_secret_takes_effect_without_a_restart(site: Site, cluster: str) -> None:
    file = site.folder / "slack-webhook"
    right = file.read_text()
    file.write_text(right.replace("/services/", "/nobody/"))
    site.post(own_labels("GPUHotter", "warning", cluster, node="gpu1"))
    time.sleep(2 * GROUP_INTERVAL_S)
    assert not site.has_arrived("GPUHotter", cluster)
    file.write_text(right)
    site.arrival("GPUHotter", cluster)


def test_secrets_are_in_no_log(site: Site) -> None:
    log = site.log.read_text()
    assert running.KEY not in log
    assert running.PASSWORD not in log
