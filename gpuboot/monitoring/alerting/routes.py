"""The route of every alert to its receiver."""

from __future__ import annotations

from typing import Any

from gpuboot.config.settings import Alertmanager
from gpuboot.config.settings.alerting import Watchdog
from gpuboot.config.settings.base import period, seconds
from gpuboot.monitoring.alerting.receivers import NONE, receiver_of

Route = dict[str, Any]


def route(alertmanager: Alertmanager) -> Route:
    """The tree of routes; the first match counts.

    An alert without a severity, or with one that we do not know, goes where warnings go: somebody
    wrote it to be notified.
    """
    return {
        "receiver": receiver_of(alertmanager, "warning"),
        "group_by": list(alertmanager.group_by),
        "group_wait": alertmanager.group_wait,
        "group_interval": alertmanager.group_interval,
        "repeat_interval": alertmanager.repeat_interval,
        "routes": [
            _watchdog(alertmanager.watchdog),
            {"receiver": NONE, "matchers": ['alertname = "InfoInhibitor"']},
            {"receiver": NONE, "matchers": ['severity = "none"']},
            {
                "receiver": receiver_of(alertmanager, "critical"),
                "matchers": ['severity = "critical"'],
                "repeat_interval": _part_of(alertmanager.repeat_interval, 3),
            },
            {
                "receiver": receiver_of(alertmanager, "warning"),
                "matchers": ['severity = "warning"'],
            },
            {"receiver": receiver_of(alertmanager, "info"), "matchers": ['severity = "info"']},
        ],
    }


def _watchdog(watchdog: Watchdog | None) -> Route:
    """The heartbeat. It is looked at once an interval, and sent when the last one is older than
    half of it: with the whole of it, the delivery's own milliseconds would make every second
    heartbeat too young to be sent."""
    matchers = ['alertname = "Watchdog"']
    if watchdog is None:
        return {"receiver": NONE, "matchers": matchers}
    return {
        "receiver": "watchdog",
        "matchers": matchers,
        "group_by": ["alertname"],
        "group_wait": "0s",
        "group_interval": watchdog.interval,
        "repeat_interval": _part_of(watchdog.interval, 2),
    }


def _part_of(duration: str, parts: int) -> str:
    """The length of each of so many equal parts of a duration."""
    return period(round(seconds(duration) * 1000 / parts))
