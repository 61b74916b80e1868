"""The lab's receiver: takes what the real services take, over TLS, and refuses what they refuse."""

from __future__ import annotations

import http.client
import json
import smtplib
import ssl
from collections.abc import Iterator
from copy import deepcopy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from lab.alert_receivers import messages, show
from lab.alert_receivers.endpoints import PAGERDUTY
from lab.alert_receivers.messages import RefusedError
from lab.alert_receivers.web import Secrets
from tests.lab.alert_receiver import receiver

KEY = "0123456789abcdef0123456789abcdef"
SLACK, WATCHDOG = "/services/T/B/token", "/watchdog/token"
LIST = """GPUXidFatal: XID 79 on GPU 3
  It has fallen off the bus.
  UUID = GPU-1
  alertname = GPUXidFatal
  gpu = 3
  node = gpu1
  severity = critical
  since 2026-11-21 17:00:00 UTC

"""
EVENT: dict[str, Any] = {
    "routing_key": KEY,
    "event_action": "trigger",
    "dedup_key": "abc",
    "payload": {
        "summary": "GPUXidFatal on gpu1",
        "source": "gpu1",
        "severity": "critical",
        "custom_details": {"firing": LIST, "resolved": ""},
    },
    "links": [{"href": "https://example.com/runbook", "text": "Runbook"}],
}
MESSAGE: dict[str, Any] = {
    "channel": "#gpu",
    "attachments": [
        {
            "title": "[WARNING x2] GPUThermalThrottle on gpu1 (lab)",
            "text": "• *GPU 0 is hot*\nToo hot.\n`gpu=0` `node=gpu1` \nRunbook: r\n"
            "• *GPU 1 is hot*\n`gpu=1` `node=gpu1` `pod=a&amp;b` \n\n"
            "*Resolved*\n• *GPU 2 was hot*\n`gpu=2` `node=gpu1` \n",
            "color": "warning",
        }
    ],
}
BEAT: dict[str, Any] = {
    "version": "4",
    "status": "firing",
    "alerts": [{"status": "firing", "labels": {"alertname": "Watchdog"}}],
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A receiver on this host: its ports, its journal, and who signed its certificate."""
    receiver_secrets = Secrets(KEY, SLACK, WATCHDOG, "gpuboot", "pass word")
    with receiver(tmp_path, receiver_secrets) as (web, mail, authority):
        yield {
            "https": web.server_port,
            "smtp": mail.port,
            "journal": tmp_path / "alerts.jsonl",
            "tls": ssl.create_default_context(cafile=str(authority.certificate)),
        }


def post(site: dict[str, Any], path: str, body: Any, kind: str = "application/json") -> Any:
    """Status and text of the answer."""
    client = http.client.HTTPSConnection("127.0.0.1", site["https"], context=site["tls"])
    content = body if isinstance(body, str) else json.dumps(body)
    client.request("POST", path, content, {"Content-Type": kind})
    response = client.getresponse()
    answer = response.status, response.read().decode()
    client.close()
    return answer


def changed(message: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The message with another value at a dotted path; None takes it out."""
    copy = deepcopy(message)
    inner: Any = copy
    *above, last = path.split(".")
    for name in above:
        inner = inner[int(name) if name.isdigit() else name]
    inner[last] = value
    if value is None:
        del inner[last]
    return copy


def test_each_service_takes_its_messages(site: dict[str, Any]) -> None:
    code, text = post(site, PAGERDUTY, EVENT)
    assert (code, json.loads(text)["dedup_key"]) == (202, "abc")
    assert post(site, SLACK, MESSAGE) == (200, "ok")
    assert post(site, WATCHDOG, BEAT) == (200, "ok")
    records = show.read(site["journal"])
    assert [record["receiver"] for record in records] == ["pagerduty", "slack", "watchdog"]
    labels = {"UUID": "GPU-1", "alertname": "GPUXidFatal", "gpu": "3", "node": "gpu1"}
    assert records[0]["alerts"] == [
        {
            "name": "GPUXidFatal",
            "labels": {**labels, "severity": "critical"},
            "status": "firing",
        }
    ]
    assert KEY not in site["journal"].read_text()


@pytest.mark.parametrize(
    ("path", "body", "code", "expected"),
    [
        (PAGERDUTY, changed(EVENT, "routing_key", None), 400, "routing_key"),
        (PAGERDUTY, changed(EVENT, "routing_key", "short"), 400, "32 characters"),
        (PAGERDUTY, changed(EVENT, "routing_key", KEY[::-1]), 400, "not the key"),
        (PAGERDUTY, {**EVENT, "service_key": KEY}, 400, "Events API v1"),
        (PAGERDUTY, changed(EVENT, "event_action", "fire"), 400, "event_action"),
        (PAGERDUTY, changed(EVENT, "payload", None), 400, "'payload' is missing"),
        (PAGERDUTY, changed(EVENT, "payload.summary", " "), 400, "payload.summary"),
        (PAGERDUTY, changed(EVENT, "payload.summary", "x" * 1025), 400, "too long"),
        (PAGERDUTY, changed(EVENT, "payload.source", ""), 400, "payload.source"),
        (PAGERDUTY, changed(EVENT, "payload.severity", "none"), 400, "payload.severity"),
        (PAGERDUTY, changed(EVENT, "dedup_key", "x" * 256), 400, "dedup_key"),
        (PAGERDUTY, {"routing_key": KEY, "event_action": "resolve"}, 400, "dedup_key"),
        (PAGERDUTY, changed(EVENT, "links.0.href", "docs/runbook.md"), 400, "href"),
        (PAGERDUTY, "{", 400, "invalid_payload"),
        (SLACK, {"text": ""}, 400, "no_text"),
        (SLACK, changed(MESSAGE, "attachments.0.color", "pink"), 400, "invalid_attachments"),
        (SLACK, [], 400, "invalid_payload"),
        (WATCHDOG, {**BEAT, "version": "3"}, 400, "version 4"),
        (WATCHDOG, {**BEAT, "alerts": []}, 400, "no alerts"),
        ("/services/T/B/another", MESSAGE, 404, "no_service"),
    ],
)
def test_malformed_messages_are_refused(
    site: dict[str, Any], path: str, body: Any, code: int, expected: str
) -> None:
    answer = post(site, path, body)
    assert answer[0] == code
    assert expected in answer[1]
    assert not site["journal"].exists()


def test_a_body_that_is_not_said_to_be_json_is_refused(site: dict[str, Any]) -> None:
    assert post(site, SLACK, MESSAGE, kind="text/plain")[0] == 400


def test_slack_tells_alerts_that_fire_from_resolved_ones() -> None:
    message = messages.slack(MESSAGE)
    assert message.status == "firing"
    assert [(alert.status, alert.labels["gpu"]) for alert in message.alerts] == [
        ("firing", "0"),
        ("firing", "1"),
        ("resolved", "2"),
    ]
    assert message.alerts[1].labels["pod"] == "a&b"
    assert {alert.name for alert in message.alerts} == {"GPUThermalThrottle"}


def mail(**headers: str) -> EmailMessage:
    message = EmailMessage()
    defaults = {
        "From": "gpu@example.com",
        "To": "ops@example.com",
        "Subject": "[INFO] GPUQuotaFull in ml (lab)",
        "Date": "Sat, 21 Nov 2026 17:00:00 +0000",
        "Message-ID": "<1@gpu>",
    }
    for name, value in {**defaults, **headers}.items():
        if value:
            message[name] = value
    message.set_content(f"FIRING\n\n{LIST}RESOLVED\n\n{LIST.replace('gpu1', 'gpu2')}")
    message.add_alternative("<p>html</p>", subtype="html")
    return message


def login(site: dict[str, Any], password: str = "pass word") -> smtplib.SMTP:
    client = smtplib.SMTP("127.0.0.1", site["smtp"])
    client.starttls(context=site["tls"])
    client.login("gpuboot", password)
    return client


def test_mail_is_taken_after_starttls_and_login(site: dict[str, Any]) -> None:
    with login(site) as client:
        client.send_message(mail())
    [record] = show.read(site["journal"])
    assert (record["receiver"], record["status"]) == ("email", "firing")
    assert record["raw"]["to"] == ["ops@example.com"]
    assert [(a["status"], a["labels"]["node"]) for a in record["alerts"]] == [
        ("firing", "gpu1"),
        ("resolved", "gpu2"),
    ]


def test_mail_is_refused_without_starttls_or_login(
    site: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with smtplib.SMTP("127.0.0.1", site["smtp"]) as client:
        with pytest.raises(smtplib.SMTPSenderRefused, match="STARTTLS"):
            client.send_message(mail())
        client.starttls(context=site["tls"])
        client.ehlo()
        with pytest.raises(smtplib.SMTPSenderRefused, match="Authentication required"):
            client.send_message(mail())
    with pytest.raises(smtplib.SMTPAuthenticationError):
        login(site, "wrong")
    assert not site["journal"].exists()
    codes = {line.split("SMTP: ")[1][:3] for line in capsys.readouterr().out.splitlines()}
    assert codes == {"530", "535"}  # in the receiver's log


@pytest.mark.parametrize(("sender", "recipient"), [("gpu", "ops@example.com"), ("gpu@x", "ops")])
def test_addresses_without_a_domain_are_refused(
    site: dict[str, Any], sender: str, recipient: str
) -> None:
    with login(site) as client, pytest.raises(smtplib.SMTPException):
        client.sendmail(sender, [recipient], mail().as_bytes())
    assert not site["journal"].exists()


@pytest.mark.parametrize("missing", ["Subject", "Date", "Message-ID"])
def test_mail_without_a_header_that_readers_need_is_refused(
    site: dict[str, Any], missing: str
) -> None:
    message = mail(**{missing: ""})
    with login(site) as client, pytest.raises(smtplib.SMTPDataError, match=missing):
        client.sendmail("gpu@example.com", ["ops@example.com"], message.as_bytes())


def test_mail_needs_plain_text_and_html() -> None:
    message = mail()
    plain, _html = message.iter_parts()
    message.set_payload([plain])
    with pytest.raises(RefusedError, match="plain and in HTML"):
        messages.email(message.as_bytes(), "a@b", ["c@d"])


def record(status: str, receiver: str = "slack", **labels: str) -> dict[str, Any]:
    alert = {"name": "GPULost", "labels": labels, "status": status}
    return {
        "time": "2026-11-21T17:00:00Z",
        "receiver": receiver,
        "status": status,
        "alerts": [alert],
        "raw": {},
    }


def test_what_fires_is_what_was_not_resolved() -> None:
    story = [
        record("firing", node="gpu1", severity="warning"),
        record("firing", node="gpu2", severity="warning"),
        record("resolved", node="gpu1"),
        record("firing", receiver="watchdog"),
    ]
    [line] = show.firing(story)
    assert line.endswith("firing    warning   GPULost  node=gpu2")
    assert show.heartbeat(story, show._seconds("2026-11-21T17:00:09Z")).endswith("9 s ago")
    assert "no heartbeat yet" in show.heartbeat(story[:3], 0)


def test_a_message_of_other_texts_is_shown_by_its_headline() -> None:
    event = changed(EVENT, "payload.custom_details", {"firing": "something else"})
    message = messages.pagerduty(event, KEY)
    [line] = show.lines({**vars(message), "time": "now"})
    assert "GPUXidFatal on gpu1" in line


def test_followers_get_old_and_new_lines(tmp_path: Path) -> None:
    journal = tmp_path / "alerts.jsonl"
    journal.write_text('{"a": 1}\n{"a": 2')
    lines = show.follow(journal)
    assert next(lines) == {"a": 1}
    with journal.open("a") as stream:
        stream.write("}\n")
    assert next(lines) == {"a": 2}
