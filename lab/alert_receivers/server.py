"""The process: HTTP over TLS, and SMTP.

    python -I -m lab.alert_receivers.server CONFIG

CONFIG is a JSON file that `lab.alert_receivers.service` writes.
"""

from __future__ import annotations

import json
import socketserver
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

from lab.alert_receivers.mail import Session
from lab.alert_receivers.web import Handler, Journal, Secrets
from lab.mirror.webserver import Server


class MailServer(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    daemon_threads = True
    allow_reuse_address = True


def make(config: dict[str, Any]) -> tuple[Server, MailServer]:
    """Both servers, bound, not yet serving.

    + config: address, https_port, smtp_port (0: any), certificate, key, journal (paths), secrets
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config["certificate"], config["key"])
    own = {"secrets": Secrets(**config["secrets"]), "journal": Journal(Path(config["journal"]))}
    web = Server((config["address"], config["https_port"]), type("Web", (Handler,), own))
    web.context = context
    session = type("Mail", (Session,), {**own, "context": context})
    return web, MailServer((config["address"], config["smtp_port"]), session)


def main(arguments: list[str]) -> None:
    config = json.loads(Path(arguments[0]).read_text())
    web, mail = make(config)
    threading.Thread(target=mail.serve_forever, daemon=True).start()
    where = f"https://{config['address']}:{config['https_port']}"
    print(f"SIMULATED PagerDuty, Slack and dead-man switch on {where},", flush=True)
    print(f"mail server on port {config['smtp_port']}", flush=True)
    web.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
