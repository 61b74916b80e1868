"""The receiver as a part of a lab: its secrets, its start and its end."""

from __future__ import annotations

import json
import secrets
import sys
from dataclasses import asdict
from pathlib import Path

from lab import processes
from lab.alert_receivers.endpoints import FOLDER, HTTPS_PORT, JOURNAL, SMTP_PORT, USER
from lab.alert_receivers.web import Secrets
from lab.mirror import service as mirror
from lab.state import Lab

NAME = "alerts.lab"


def trust(lab: Lab) -> None:
    """Give the receiver its certificate and its secrets, unless it has them.

    The certificate names the address too: pods find no name of the lab's in their DNS.
    """
    folder = lab.folder / FOLDER
    if (folder / "receiver.json").exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    mirror.authority().issue(NAME, lab.host_address, folder / "tls.crt", folder / "tls.key")
    secret_values = Secrets(
        pagerduty=secrets.token_hex(16),
        slack=f"/services/T00LAB/B00LAB/{secrets.token_urlsafe(18)}",
        watchdog=f"/watchdog/{secrets.token_urlsafe(18)}",
        user=USER,
        password=secrets.token_urlsafe(18),
    )
    origin = f"https://{lab.host_address}:{HTTPS_PORT}"
    _write(folder / "pagerduty-routing-key", secret_values.pagerduty)
    _write(folder / "slack-webhook", origin + secret_values.slack)
    _write(folder / "watchdog-url", origin + secret_values.watchdog)
    _write(folder / "email-password", secret_values.password)
    config = {
        "address": lab.host_address,
        "https_port": HTTPS_PORT,
        "smtp_port": SMTP_PORT,
        "certificate": str(folder / "tls.crt"),
        "key": str(folder / "tls.key"),
        "journal": str(lab.folder / JOURNAL),
        "secrets": asdict(secret_values),
    }
    _write(folder / "receiver.json", json.dumps(config))


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.touch(mode=0o600)
    part.write_text(text + "\n")
    part.replace(path)


def start(lab: Lab) -> None:
    """Start the receiver, unless it runs."""
    folder, unit = server_dir(lab), lab.unit("alerts")
    if not processes.is_running(unit, folder):
        processes.kill(unit, folder)
    config = lab.folder / FOLDER / "receiver.json"
    processes.start(
        unit, folder, [sys.executable, "-I", "-m", "lab.alert_receivers.server", str(config)]
    )
    for port in (HTTPS_PORT, SMTP_PORT):
        processes.wait_for_port(unit, folder, lab.host_address, port)


def stop(lab: Lab) -> None:
    """Stop the receiver; what it took stays until the lab is taken down."""
    processes.kill(lab.unit("alerts"), server_dir(lab))


def is_running(lab: Lab) -> bool:
    return processes.is_running(lab.unit("alerts"), server_dir(lab))


def server_dir(lab: Lab) -> Path:
    """The process' folder: its console.log says what was refused."""
    return lab.folder / "alerts-server"
