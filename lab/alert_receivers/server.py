"""The process: HTTP over TLS, and SMTP.

    python -I -m lab.alert_receivers.server CONFIG

CONFIG is a JSON file that `lab.alert_receivers.service` writes.
"""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Any

from lab.alert_receivers.mail import MailServer
from lab.alert_receivers.web import Handler, Journal, Secrets
from lab.mirror.webserver import Server


def make(config: dict[str, Any]) -> tuple[Server, MailServer]:
    """Both servers, not yet serving.

    + config: address, https_port (0: any), smtp_port, certificate, key, journal (paths), secrets
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config["certificate"], config["key"])
    secrets, journal = Secrets(**config["secrets"]), Journal(Path(config["journal"]))
    handler = type("Web", (Handler,), {"secrets": secrets, "journal": journal})
    web = Server((config["address"], config["https_port"]), handler)
    web.context = context
    return web, MailServer(config["address"], config["smtp_port"], context, secrets, journal)


def main(arguments: list[str]) -> None:
    config = json.loads(Path(arguments[0]).read_text())
    web, mail = make(config)
    mail.start()
    url = f"https://{config['address']}:{config['https_port']}"
    print(f"SIMULATED PagerDuty, Slack and dead-man switch on {url},", flush=True)
    print(f"mail server on port {config['smtp_port']}", flush=True)
    web.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
