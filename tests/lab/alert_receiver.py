"""The lab's receiver of alerts on this host, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from lab.alert_receivers.server import MailServer, make
from lab.alert_receivers.web import Secrets
from lab.mirror.keys import Authority
from lab.mirror.webserver import Server


@contextmanager
def receiver(folder: Path, secrets: Secrets) -> Iterator[tuple[Server, MailServer, Authority]]:
    """Its two servers on free ports, and who signed its certificate; alerts.jsonl in `folder`."""
    authority = Authority.ensure(folder / "ca")
    crt, key = folder / "tls.crt", folder / "tls.key"
    authority.issue("alerts.lab", "127.0.0.1", crt, key)
    web, mail = make(
        {
            "address": "127.0.0.1",
            "https_port": 0,
            "smtp_port": 0,
            "certificate": str(crt),
            "key": str(key),
            "journal": str(folder / "alerts.jsonl"),
            "secrets": asdict(secrets),
        }
    )
    for one in (web, mail):
        threading.Thread(target=one.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield web, mail, authority
    finally:
        for one in (web, mail):
            one.shutdown()
            one.server_close()
