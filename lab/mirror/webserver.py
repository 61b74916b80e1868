"""The mirror's web server: that of `gpuboot mirror serve`, over TLS; and the lab's name server.

Run as a script: python -I webserver.py DOCROOT ADDRESS PORT CERTIFICATE KEY [NAME]
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from gpuboot.mirror import web
from gpuboot.mirror.web import Server, headers_for, locate
from lab.mirror import name_server

__all__ = ["Handler", "Server", "headers_for", "locate", "make_server"]


class Handler(web.Handler):
    """Answers GET and HEAD for files below `docroot`, always with all of a file."""

    server_version = "gpuboot-lab-mirror"
    ranges = False


def make_server(docroot: Path, address: str, port: int, certificate: Path, key: Path) -> Server:
    """A server that is bound, but does not serve yet."""
    return web.make_server(docroot, address, port, certificate, key, Handler)


def main(arguments: list[str]) -> None:
    docroot, address, port, certificate, key, *names = arguments
    for name in names:
        resolver = name_server.make_server(address, 53, name)
        threading.Thread(target=resolver.serve_forever, daemon=True).start()
    server = make_server(Path(docroot), address, int(port), Path(certificate), Path(key))
    print(f"serving {docroot} on https://{address}:{port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
