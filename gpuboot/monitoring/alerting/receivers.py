"""Alertmanager's receivers: where messages go, what they hold, and which severity gets which.

Texts come from templates/alertmanager/gpuboot.tmpl. Only the `*_file` forms are used for what is
secret: Alertmanager reads these files whenever it sends (webhooks: from version 0.26 on).
"""

from __future__ import annotations

from typing import Any

from gpuboot.config.settings import Alertmanager
from gpuboot.config.settings.alerting import Severity
from gpuboot.monitoring.alerting.secrets import (
    CA,
    EMAIL,
    PAGERDUTY,
    SLACK,
    WATCHDOG,
    receiver_secrets,
)

Receiver = dict[str, Any]

NONE = "null"
_ORDER: tuple[tuple[Severity, str], ...] = (
    ("critical", "pagerduty"),
    ("warning", "slack"),
    ("info", "email"),
)
# What a person on call wants to see at once, beside the list of alerts. Single words only, which
# are no YAML: Alertmanager makes a map of "GPU 3: lost", and a list of "-".
_DETAILS = {
    "runbook": "CommonAnnotations.runbook_url",
    "gpu_action": "CommonLabels.gpu_action",
    "node": "CommonLabels.node",
    "gpu": "CommonLabels.gpu",
    "uuid": "CommonLabels.UUID",
    "namespace": "CommonLabels.namespace",
    "pod": "CommonLabels.pod",
}


def receiver_of(alertmanager: Alertmanager, severity: Severity) -> str:
    """The receiver of a severity: its own, else the next one below that is set, else none."""
    names = [name for _, name in _ORDER]
    for name in names[[level for level, _ in _ORDER].index(severity) :]:
        if getattr(alertmanager, name) is not None:
            return name
    return NONE


def receivers(alertmanager: Alertmanager, folder: str) -> list[Receiver]:
    """All receivers, the one that drops what it gets first.

    + folder: where Alertmanager finds its secrets, see `alerting.secrets`
    """
    configured: list[Receiver] = [{"name": NONE}]
    paths = {key: item.at(folder) for key, item in receiver_secrets(alertmanager).items()}
    if alertmanager.pagerduty:
        configured.append(_pagerduty(paths[PAGERDUTY]))
    if alertmanager.slack:
        configured.append(_slack(paths[SLACK], alertmanager.slack.channel))
    if alertmanager.email:
        configured.append(_email(alertmanager, paths.get(EMAIL), folder))
    if alertmanager.watchdog:
        # no word of its end: silence is the signal
        webhook = {"url_file": paths[WATCHDOG], "send_resolved": False, "max_alerts": 1}
        configured.append({"name": "watchdog", "webhook_configs": [webhook]})
    return configured


def _text(name: str) -> str:
    return f'{{{{ template "gpuboot.{name}" . }}}}'


def _pagerduty(key: str) -> Receiver:
    """The receiver PagerDuty: an incident for each group of alerts, by Alertmanager's key of the
    group as `dedup_key`; the resolved message closes it."""
    details = {name: f'{{{{ or .{path} "none" }}}}' for name, path in _DETAILS.items()}
    config = {
        "routing_key_file": key,
        "send_resolved": True,
        "description": _text("summary"),
        "severity": _text("pagerduty.severity"),
        "source": _text("source"),
        "class": "{{ .CommonLabels.alertname }}",
        "component": "{{ .CommonLabels.component }}",
        "group": "{{ .CommonLabels.cluster }}",
        "client": "gpuboot",
        "client_url": _text("url"),
        "links": [
            {"href": _text("runbook"), "text": "Runbook"},
            {"href": _text("silence"), "text": "Silence"},
        ],
        "details": {
            **details,
            "firing": _text("pagerduty.firing"),
            "resolved": _text("pagerduty.resolved"),
        },
    }
    return {"name": "pagerduty", "pagerduty_configs": [config]}


def _slack(webhook: str, channel: str | None) -> Receiver:
    config = {
        "api_url_file": webhook,
        "send_resolved": True,
        "username": "gpuboot",
        "color": _text("slack.color"),
        "title": _text("subject"),
        "title_link": _text("url"),
        "text": _text("slack.text"),
        "fallback": _text("subject"),
        "footer": _text("footer"),
        "mrkdwn_in": ["text"],
    }
    if channel:
        config["channel"] = channel
    return {"name": "slack", "slack_configs": [config]}


def _email(alertmanager: Alertmanager, password: str | None, folder: str) -> Receiver:
    email = alertmanager.email
    assert email is not None
    config: Receiver = {
        "to": ", ".join(email.to),
        "from": email.sender,
        "smarthost": email.smarthost,
        "require_tls": email.require_tls,
        "send_resolved": True,
        "headers": {"Subject": _text("subject")},
        "text": _text("email.text"),
        "html": _text("email.html"),
    }
    if email.username:
        config["auth_username"] = email.username
    if password:
        config["auth_password_file"] = password
    if alertmanager.ca_file:
        config["tls_config"] = {"ca_file": f"{folder}/{CA}"}
    return {"name": "email", "email_configs": [config]}
