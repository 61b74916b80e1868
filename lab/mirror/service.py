"""The mirror's web server on the host, and the certificates that its clients trust."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lab import processes
from lab.mirror import name_server
from lab.mirror.keys import CertificateAuthority
from lab.state import MIRROR_NAME, Lab, cache_dir

WEBSERVER = Path(__file__).parent / "webserver.py"


def authority() -> CertificateAuthority:
    """The lab's certificate authority, one per cache."""
    return CertificateAuthority.ensure(cache_dir() / "keys" / "ca")


def trust(lab: Lab) -> None:
    """Give the lab its CA certificate and its mirror a server certificate."""
    ca = authority()
    lab.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ca.certificate, lab.ca)
    if not (lab.folder / "mirror.crt").exists():  # it is written after its key
        ca.issue(
            MIRROR_NAME, lab.host_address, lab.folder / "mirror.crt", lab.folder / "mirror.key"
        )


def start(lab: Lab) -> None:
    """Start the mirror's web server, unless it runs."""
    files = [lab.docroot, lab.host_address, 443, lab.folder / "mirror.crt"]
    files.append(lab.folder / "mirror.key")
    names = [] if lab.upstream else [MIRROR_NAME]  # an upstream lab has name servers of its own
    command = [sys.executable, "-I", str(WEBSERVER), *map(str, files), *names]
    folder, unit = server_dir(lab), lab.unit("mirror")
    if not processes.is_running(unit, folder):
        processes.kill(unit, folder)
        name_server.note(lab.folder, bool(names))
    processes.start(unit, folder, command)
    processes.wait_for_port(unit, folder, lab.host_address, 443)


def stop(lab: Lab) -> None:
    """Stop the mirror's web server."""
    processes.kill(lab.unit("mirror"), server_dir(lab))


def is_running(lab: Lab) -> bool:
    return processes.is_running(lab.unit("mirror"), server_dir(lab))


def server_dir(lab: Lab) -> Path:
    """The web server's folder: its console.log is the access log."""
    return lab.folder / "mirror-server"
