"""PagerDuty's, Slack's and the dead-man switch's side of HTTP."""

from __future__ import annotations

import http.server
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from lab.alert_receivers import messages
from lab.alert_receivers.endpoints import PAGERDUTY
from lab.alert_receivers.messages import Message, RefusedError

_MAX_BODY = 512 * 1024  # bytes; PagerDuty's limit


@dataclass(frozen=True)
class Secrets:
    """Credentials that the services accept. slack, watchdog: the paths of their URLs."""

    pagerduty: str
    slack: str
    watchdog: str
    user: str
    password: str


class Journal:
    """The file of messages, one line of JSON each, in the order in which they came."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()

    def add(self, message: Message) -> None:
        """Write a message; it is there for readers when this returns."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **asdict(message)}
        with self._lock, self._path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def say(client: str, text: str) -> None:
    """Write a line to the process' log."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{stamp} {client} {text}", flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    """Takes POST requests. A subclass has the class attributes set."""

    protocol_version = "HTTP/1.1"
    server_version = "gpuboot-lab-receiver-SIMULATED"
    sys_version = ""
    timeout = 60
    secrets: Secrets
    journal: Journal

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, _MAX_BODY))
        self.close_connection = self.close_connection or length > _MAX_BODY
        handler = self._services().get(self.path)
        if handler is None:
            self._answer(404, "text/plain", "no_service")
            return
        try:
            message = handler(self._json(body))
        except (RefusedError, AttributeError, KeyError, TypeError) as error:
            self._refuse(str(error))
            return
        self.journal.add(message)
        if message.receiver == "pagerduty":
            dedup = str(message.raw.get("dedup_key") or "made-up-by-the-lab")
            answer = {"status": "success", "message": "Event processed", "dedup_key": dedup}
            self._answer(202, "application/json", json.dumps(answer))
        else:
            self._answer(200, "text/plain", "ok")

    def _services(self) -> dict[str, Callable[[Any], Message]]:
        """Path -> what reads a message posted there. Those of Slack and the switch are secret."""
        return {
            PAGERDUTY: lambda event: messages.pagerduty(event, self.secrets.pagerduty),
            self.secrets.slack: messages.slack,
            self.secrets.watchdog: messages.watchdog,
        }

    def _json(self, body: bytes) -> Any:
        if self.close_connection and len(body) == _MAX_BODY:
            raise RefusedError("the body is too large")
        if not self.headers.get("Content-Type", "").startswith("application/json"):
            raise RefusedError("the body is not said to be JSON")
        try:
            return json.loads(body)
        except ValueError as error:
            raise RefusedError("invalid_payload") from error

    def _refuse(self, reason: str) -> None:
        if self.path != PAGERDUTY:
            self._answer(400, "text/plain", reason)
            return
        body = {"status": "invalid event", "message": "Event object is invalid", "errors": [reason]}
        self._answer(400, "application/json", json.dumps(body))

    def _answer(self, code: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        if code >= 400:
            say(self.client_address[0], f"refused: {text}")

    def log_message(self, format: str, *args: Any) -> None:
        # paths hold tokens: the log has their first part only, which names the service
        say(self.client_address[0], f"{self.command} {'/'.join(self.path.split('/')[:2])}/…")
