"""The messages that arrived, for people: one line an alert."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]

_POLL_S = 0.5
# the labels that are shown, in this order: they say where it happened
_PLACES = ("node", "gpu", "UUID", "GPU_I_ID", "namespace", "pod", "xid", "gpu_action")


def read(path: Path) -> list[Record]:
    """All messages so far, oldest first; none when nothing came yet."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def follow(path: Path) -> Iterator[Record]:
    """All messages, and then each as it comes, without end."""
    while not path.exists():
        time.sleep(_POLL_S)
    with path.open() as stream:
        part = ""
        while True:
            part += stream.readline()
            if part.endswith("\n"):
                yield json.loads(part)
                part = ""
            else:
                time.sleep(_POLL_S)


def lines(record: Record) -> list[str]:
    """A line for each alert of a message; one for the message when it names none."""
    alerts = record["alerts"] or [
        {"name": _headline(record), "labels": {}, "status": record["status"]}
    ]
    return [_line(record, alert) for alert in alerts]


def firing(records: Iterable[Record]) -> list[str]:
    """A line for each alert whose last message says that it fires, by receiver; no heartbeats."""
    last: dict[tuple[object, ...], tuple[str, str]] = {}
    for record in records:
        if record["receiver"] == "watchdog":
            continue
        for alert in record["alerts"]:
            # a resolved message of Slack's does not tell the severity
            labels = {key: value for key, value in alert["labels"].items() if key != "severity"}
            key = (record["receiver"], alert["name"], *sorted(labels.items()))
            last[key] = (alert["status"], _line(record, alert))
    return [line for status, line in last.values() if status == "firing"]


def heartbeat(records: Iterable[Record], now: float) -> str:
    """When the alert Watchdog came last, which shows that alerting works at all."""
    beats = [record["time"] for record in records if record["receiver"] == "watchdog"]
    if not beats:
        return "watchdog: no heartbeat yet"
    age = now - _seconds(beats[-1])
    return f"watchdog: {len(beats)} heartbeats, the last one {age:.0f} s ago"


def _line(record: Record, alert: Mapping[str, Any]) -> str:
    labels = alert["labels"]
    severity = labels.get("severity", "")
    places = " ".join(f"{key}={labels[key]}" for key in _PLACES if labels.get(key))
    return (
        f"{record['time']}  {record['receiver']:9}  {alert['status']:8}  {severity:8}  "
        f"{alert['name']}  {places}"
    ).rstrip()


def _headline(record: Record) -> str:
    raw = record["raw"]
    payload = raw.get("payload") or {}
    title = next((item.get("title") for item in raw.get("attachments") or []), None)
    return str(payload.get("summary") or raw.get("subject") or title or "a message")


def _seconds(stamp: str) -> float:
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
