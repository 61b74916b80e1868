"""Ports and paths of the receivers, and gpuboot's settings that send all alerts to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HTTPS_PORT = 8443
SMTP_PORT = 587
USER = "gpuboot"
PAGERDUTY = "/v2/enqueue"
JOURNAL = "alerts.jsonl"
FOLDER = "alerting"  # below the lab's: the files that the settings name, and the receiver's own


def settings(home: Path, address: str) -> dict[str, Any]:
    """gpuboot's settings section `alertmanager` for a lab: everything goes to its receiver.

    + home: the lab's folder
    + address: of the host on the lab's bridge
    """

    def file(name: str) -> dict[str, str]:
        return {"file": str(home / FOLDER / name)}

    return {
        "pagerduty": {
            "routing_key": file("pagerduty-routing-key"),
            "url": f"https://{address}:{HTTPS_PORT}{PAGERDUTY}",
        },
        "slack": {"webhook": file("slack-webhook"), "channel": "#gpu"},
        "email": {
            "to": ["gpu-info@example.com"],
            "sender": "gpuboot@example.com",
            "smarthost": f"{address}:{SMTP_PORT}",
            "username": USER,
            "password": file("email-password"),
        },
        "watchdog": {"url": file("watchdog-url")},
        "ca_file": str(home / "ca.crt"),
        # people watch the lab: they see what they break, and that it ended
        "group_wait": "5s",
        "group_interval": "20s",
    }
