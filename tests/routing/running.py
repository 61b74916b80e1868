"""A real Alertmanager and the lab's receiver on this host, for tests of what arrives."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.alert_receivers import show
from lab.alert_receivers.endpoints import PAGERDUTY, USER
from lab.alert_receivers.web import Secrets
from tests.lab.alert_receiver import receiver
from tests.routing.programs import programs, write

GROUP_WAIT_S, GROUP_INTERVAL_S = 0.2, 0.6
_PATIENCE_S = 20.0
KEY, SLACK, WATCHDOG = "a" * 32, "/services/T/B/token", "/watchdog/token"
PASSWORD = "pass word"

Record = Mapping[str, Any]


@dataclass
class Site:
    """alertmanager: its URL. journal: of the receiver. config: alertmanager.yml."""

    alertmanager: str
    journal: Path
    config: Path
    log: Path
    folder: Path

    def post(
        self,
        *alerts: Mapping[str, str],
        resolved: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Tell Alertmanager of alerts that begin in a moment, or end now.

        It does not wait for more of the group once an alert is older than the group's wait, and on
        a busy computer one that begins now is so when it arrives.
        """
        now = datetime.now(UTC)
        body = [
            {
                "labels": dict(labels),
                "annotations": {"summary": f"about {labels['alertname']}", **(annotations or {})},
                "startsAt": (now + timedelta(seconds=-1 if resolved else 5)).isoformat(),
                "endsAt": (now if resolved else now + timedelta(minutes=5)).isoformat(),
                "generatorURL": "http://prometheus.example/graph?a=1&b=2",
            }
            for labels in alerts
        ]
        request = urllib.request.Request(
            f"{self.alertmanager}/api/v2/alerts",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.status == 200

    def wait(self, predicate: Callable[[Record], bool]) -> Record:
        """The first message that is as wanted."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for record in show.read(self.journal):
                if predicate(record):
                    return record
            time.sleep(0.05)
        arrived = [(record["receiver"], record["status"]) for record in show.read(self.journal)]
        raise AssertionError(
            f"it did not come; there came {arrived}\n{self.log.read_text()[-2000:]}"
        )

    def arrival(self, name: str, cluster: str, status: str = "firing") -> Record:
        """The first message of this status about an alert of this cluster."""
        return self.wait(
            lambda record: record["status"] == status and _is_about(record, name, cluster)
        )

    def has_arrived(self, name: str, cluster: str) -> bool:
        return any(_is_about(record, name, cluster) for record in show.read(self.journal))


def _is_about(record: Record, name: str, cluster: str) -> bool:
    # Slack's message has the cluster in its title only
    return any(alert["name"] == name for alert in record["alerts"]) and cluster in json.dumps(
        record
    )


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Both, until the block ends. Skips the test when the lab's Alertmanager is not built yet."""
    if programs().alertmanager is None:
        pytest.skip("no Alertmanager that runs here: scripts/lab builds it")
    credentials = Secrets(KEY, SLACK, WATCHDOG, USER, PASSWORD)
    with receiver(folder, credentials) as (web, mail, authority):
        origin = f"https://127.0.0.1:{web.server_port}"
        secrets_folder = folder / "secrets"
        secrets_folder.mkdir()
        contents = {
            "pagerduty-routing-key": KEY,
            "slack-webhook": origin + SLACK,
            "watchdog-url": origin + WATCHDOG,
            "email-password": PASSWORD,
            "ca.crt": authority.certificate.read_text(),
        }
        for name, text in contents.items():
            (secrets_folder / name).write_text(text)
        with _alertmanager(folder, _settings(origin, mail.port), secrets_folder) as url:
            yield Site(
                url,
                folder / "alerts.jsonl",
                folder / "alertmanager.yml",
                folder / "alertmanager.log",
                secrets_folder,
            )


def _settings(origin: str, smtp_port: int) -> dict[str, Any]:
    file = {"file": "the folder of secrets has it"}
    return {
        "pagerduty": {"routing_key": file, "url": origin + PAGERDUTY},
        "slack": {"webhook": file, "channel": "#gpu"},
        "email": {
            "to": ["ops@example.com", "gpu@example.com"],
            "sender": "gpuboot@example.com",
            "smarthost": f"127.0.0.1:{smtp_port}",
            "username": USER,
            "password": file,
        },
        "watchdog": {"url": file, "interval": "1s"},
        "ca_file": "the folder of secrets has it",
        "group_wait": f"{GROUP_WAIT_S * 1000:.0f}ms",
        "group_interval": f"{GROUP_INTERVAL_S * 1000:.0f}ms",
    }


@contextmanager
def _alertmanager(folder: Path, data: dict[str, Any], secrets: Path) -> Iterator[str]:
    config = write(data, folder, str(secrets))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = folder / "alertmanager.log"
    command = [
        str(programs().alertmanager),
        f"--config.file={config}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--web.external-url=https://alertmanager.example",
        "--web.route-prefix=/",
    ]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
    try:
        _wait_until_ready(url, process, log)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
