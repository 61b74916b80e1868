"""The lab's receiver of alerts on this host, for tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from lab.alert_receivers.mail import MailServer
from lab.alert_receivers.server import make
from lab.alert_receivers.web import Secrets
from lab.mirror.keys import CertificateAuthority
from lab.mirror.webserver import Server


@contextmanager
def receiver(
    folder: Path, secrets: Secrets
) -> Iterator[tuple[Server, MailServer, CertificateAuthority]]:
    """Its two servers on free ports, and who signed its certificate; alerts.jsonl in `folder`."""
    authority = CertificateAuthority.ensure(folder / "ca")
    crt, key = folder / "tls.crt", folder / "tls.key"
    authority.issue("alerts.lab", "127.0.0.1", crt, key)
    web, mail = make(
        {
            "address": "127.0.0.1",
            "https_port": 0,
            "smtp_port": _free_port(),
            "certificate": str(crt),
            "key": str(key),
            "journal": str(folder / "alerts.jsonl"),
            "secrets": asdict(secrets),
        }
    )
    threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
    mail.start()
    try:
        yield web, mail, authority
    finally:
        mail.stop()
        web.shutdown()
        web.server_close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
