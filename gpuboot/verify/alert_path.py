"""The way of an alert from Prometheus' rules through Alertmanager to its receiver, as read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEARTBEAT = "Watchdog"
REFUSALS_WINDOW = "15m"


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """A condition of a silence, as Alertmanager's API has it."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def __str__(self) -> str:
        sign = "=" if self.is_equal else "!"
        operator = f"{sign}~" if self.is_regex else sign if self.is_equal else "!="
        return f'{self.name}{operator}"{self.value}"'


@dataclass(frozen=True, kw_only=True)
class Silence:
    """A silence that is in force. + ends: RFC 3339"""

    id: str
    author: str
    comment: str
    ends: str
    matchers: tuple[Matcher, ...]


@dataclass(frozen=True, kw_only=True)
class HeartbeatAlert:
    """The alert that always fires, as Alertmanager holds it.

    + labels: its own, with those that Prometheus adds to every alert
    + suppressed_by: ids of silences and alerts by which Alertmanager sends no message of it
    """

    labels: Mapping[str, str]
    suppressed_by: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AlertPath:
    """What was read of the way from rules to receivers.

    + stopped: what the Prometheus operator does not keep up, e.g. `Prometheus x is paused`
    + heartbeat: None: Alertmanager holds no such alert
    + silences: those in force
    + rejected: integrations of which every message of the last minutes was refused
    """

    stopped: tuple[str, ...] = ()
    heartbeat: HeartbeatAlert | None = None
    silences: tuple[Silence, ...] = ()
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AlertDelivery:
    """What became of a test alert.

    + receiver: the one that the settings have for its severity; `null`: none
    + error: why no receiver took it; "": it was taken
    """

    severity: str
    receiver: str
    seconds: float = 0.0
    error: str = ""


def parse_stopped(answer: Any) -> list[str]:
    """What of a list of Prometheus or Alertmanager objects is paused or has no pod."""
    return [
        text
        for item in answer["items"]
        for text in stopped_texts(
            f"{item.get('kind') or answer['kind'].removesuffix('List')} {item['metadata']['name']}",
            item["spec"],
        )
    ]


def stopped_texts(title: str, spec: Mapping[str, Any]) -> list[str]:
    """What of one Prometheus or Alertmanager object is paused or has no pod.

    + title: its kind and name
    """
    texts = []
    if spec.get("paused"):
        texts.append(f"{title} is paused: the operator applies no change to it")
    if spec.get("replicas") == 0:
        texts.append(f"{title} has 0 replicas")
    return texts


def parse_heartbeat(alerts: Any) -> HeartbeatAlert | None:
    """The heartbeat of Alertmanager's list of alerts (GET /api/v2/alerts)."""
    for item in alerts:
        if item["labels"]["alertname"] == HEARTBEAT:
            status = item["status"]
            muting = [*status.get("silencedBy", ()), *status.get("inhibitedBy", ())]
            muting += status.get("mutedBy", ())
            return HeartbeatAlert(labels=item["labels"], suppressed_by=tuple(muting))
    return None


def parse_silences(silences: Any) -> tuple[Silence, ...]:
    """The silences in force of Alertmanager's list (GET /api/v2/silences)."""
    return tuple(
        Silence(
            id=item["id"],
            author=item["createdBy"],
            comment=item["comment"],
            ends=item["endsAt"],
            matchers=tuple(
                Matcher(
                    name=matcher["name"],
                    value=matcher["value"],
                    is_regex=matcher["isRegex"],
                    is_equal=matcher.get("isEqual", True),
                )
                for matcher in item["matchers"]
            ),
        )
        for item in silences
        if item["status"]["state"] == "active"
    )
