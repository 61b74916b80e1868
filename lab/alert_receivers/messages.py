"""What each service accepts as a message, and which alerts the message is about.

Rules from PagerDuty's Events API v2, Slack's incoming webhooks and Alertmanager's webhook format.
Alerts inside PagerDuty's, Slack's and mail's messages are read from gpuboot's own texts
(templates/alertmanager); of other texts only the message as a whole is kept.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any, Literal

Status = Literal["firing", "resolved"]
Json = Mapping[str, Any]

_MAX_SUMMARY, _MAX_DEDUP = 1024, 255  # characters
_COLOR = re.compile(r"good|warning|danger|#[0-9A-Fa-f]{6}")
_TITLE = re.compile(r"\[(?P<what>RESOLVED|[A-Z]+)(?: x\d+)?\] (?P<name>\S+)")
_LABEL = re.compile(r"  (\w+) = (.*)")
_MARK = re.compile(r"`(\w+)=([^`]*)`")


class RefusedError(ValueError):
    """The service would not take this message. The text says why, as the service would."""


@dataclass(frozen=True)
class Alert:
    """An alert of a message, as far as the medium carries it."""

    name: str
    labels: Mapping[str, str]
    status: Status


@dataclass(frozen=True)
class Message:
    """A message that was taken. raw: what came, less the secret it came with."""

    receiver: Literal["pagerduty", "slack", "email", "watchdog"]
    status: Status
    alerts: tuple[Alert, ...]
    raw: Any = field(repr=False)


def pagerduty(event: Any, key: str) -> Message:
    """An event of the Events API v2. Raises `Refused` for what PagerDuty answers with 400.

    + key: the integration key there is
    """
    _require(isinstance(event, dict), "Event object is invalid: it is no JSON object")
    _require("service_key" not in event, "'service_key' belongs to Events API v1")
    routing = event.get("routing_key")
    _require(
        isinstance(routing, str) and len(routing) == 32,
        "Length of 'routing_key' is incorrect (should be 32 characters)",
    )
    _require(routing == key, "'routing_key' is not the key of an integration")
    action = event.get("event_action")
    _require(action in ("trigger", "acknowledge", "resolve"), "'event_action' is invalid")
    dedup = event.get("dedup_key") or ""
    _require(len(dedup) <= _MAX_DEDUP, "'dedup_key' is too long")
    _require(action == "trigger" or bool(dedup), "'dedup_key' is missing or blank")
    if action == "trigger":
        _payload(event.get("payload"))
    for link in event.get("links") or []:
        _require(_is_url(link.get("href")), "'links' holds one without an 'href'")
    details = (event.get("payload") or {}).get("custom_details") or {}
    alerts = [*_alerts_of(details.get("firing"), "firing")]
    alerts += _alerts_of(details.get("resolved"), "resolved")
    raw = {name: value for name, value in event.items() if name != "routing_key"}
    return Message("pagerduty", "resolved" if action == "resolve" else "firing", tuple(alerts), raw)


def _payload(payload: Any) -> None:
    _require(isinstance(payload, dict), "'payload' is missing or blank")
    for name in ("summary", "source"):
        text = payload.get(name)
        _require(
            isinstance(text, str) and bool(text.strip()), f"'payload.{name}' is missing or blank"
        )
    _require(len(payload["summary"]) <= _MAX_SUMMARY, "'payload.summary' is too long")
    _require(
        payload.get("severity") in ("critical", "error", "warning", "info"),
        "'payload.severity' is invalid (must be one of 'critical', 'warning', 'error' or 'info')",
    )


def slack(payload: Any) -> Message:
    """A message for an incoming webhook. Raises `Refused` with Slack's own words."""
    _require(isinstance(payload, dict), "invalid_payload")
    attachments = payload.get("attachments") or []
    _require(isinstance(attachments, list) and len(attachments) <= 100, "too_many_attachments")
    _require(bool(payload.get("text") or attachments), "no_text")
    alerts: list[Alert] = []
    resolved = False
    for item in attachments:
        _require(bool(item.get("text") or item.get("fallback")), "no_text")
        color = item.get("color")
        _require(color is None or bool(_COLOR.fullmatch(color)), "invalid_attachments")
        title = _TITLE.match(item.get("title", ""))
        if title:
            resolved = title["what"] == "RESOLVED"
            alerts += _marked(item.get("text", ""), title, "resolved" if resolved else "firing")
    return Message("slack", "resolved" if resolved else "firing", tuple(alerts), payload)


def _marked(text: str, title: re.Match[str], status: Status) -> Iterator[Alert]:
    """Alerts of gpuboot's Slack text: a bullet each, its labels as `name=value`."""
    common = {"alertname": title["name"]}
    if title["what"] != "RESOLVED":
        common["severity"] = title["what"].lower()
    bullet = False
    labels: dict[str, str] = {}
    for line in [*text.splitlines(), "• "]:
        if line.startswith("• ") and bullet:
            yield Alert(labels["alertname"], labels, status)
        if line.startswith("• "):
            bullet, labels = True, dict(common)
        elif line == "*Resolved*":
            yield Alert(labels["alertname"], labels, status)
            bullet, status = False, "resolved"
        labels.update((name, html.unescape(value)) for name, value in _MARK.findall(line))


def watchdog(payload: Any) -> Message:
    """Alertmanager's webhook message, version 4. Raises `Refused` for anything else."""
    _require(isinstance(payload, dict), "no JSON object")
    _require(payload.get("version") == "4", "no message of Alertmanager's webhook, version 4")
    alert_list = payload.get("alerts")
    _require(isinstance(alert_list, list) and bool(alert_list), "no alerts")
    alerts = [
        Alert(item["labels"].get("alertname", ""), item["labels"], item["status"])
        for item in payload["alerts"]
    ]
    return Message("watchdog", payload["status"], tuple(alerts), payload)


def email(content: bytes, sender: str, recipients: Iterable[str]) -> Message:
    """A mail. Raises `Refused` when what readers and relays need is missing.

    + sender, recipients: of the envelope
    """
    mail = BytesParser(policy=policy.default).parsebytes(content)
    assert isinstance(mail, EmailMessage)
    for header in ("From", "To", "Subject", "Date", "Message-ID"):
        _require(bool(str(mail.get(header, "")).strip()), f"no header {header}")
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    _require(plain is not None and page is not None, "no text in plain and in HTML")
    assert plain is not None
    assert page is not None
    text, subject = "\n".join(plain.get_content().splitlines()), str(mail["Subject"])
    title = _TITLE.match(subject)
    resolved = title is not None and title["what"] == "RESOLVED"
    firing, _, resolved_text = f"\n{text}\n".partition("\nRESOLVED\n")
    raw = {
        "from": sender,
        "to": list(recipients),
        "subject": subject,
        "text": text,
        "html": page.get_content(),
    }
    alerts = [*_alerts_of(firing, "firing"), *_alerts_of(resolved_text, "resolved")]
    return Message("email", "resolved" if resolved else "firing", tuple(alerts), raw)


def _alerts_of(text: str | None, status: Status) -> Iterator[Alert]:
    """Alerts of gpuboot's plain text list: indented `label = value` lines below each headline."""
    labels: dict[str, str] = {}
    for line in [*(text or "").splitlines(), ""]:
        if label := _LABEL.fullmatch(line):
            labels[label[1]] = label[2]
        elif not line.startswith("  ") and labels:
            yield Alert(labels.get("alertname", ""), labels, status)
            labels = {}


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _require(condition: bool, refusal: str) -> None:
    if not condition:
        raise RefusedError(refusal)
