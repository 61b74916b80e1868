"""The name beyond the cluster that pods and nodes have to resolve."""

from __future__ import annotations

from urllib.parse import urlsplit

from gpuboot.config.compose_images import mirrored
from gpuboot.config.inventory import is_address
from gpuboot.config.settings import Settings

_HUB = "docker.io"  # what an image without a registry comes from
_QUERY_ID = b"gb"


def of_site(settings: Settings) -> str:
    """The name; "" where there is none to ask.

    `verify.outside_name`, or else what images are pulled by: the host of the proxy, of the mirror
    or of the registry.
    """
    if settings.verify.outside_name is not None:
        return settings.verify.outside_name.rstrip(".")
    proxy = settings.proxy.https or settings.proxy.http
    registry, slash, _ = mirrored(settings.verify.image, settings.mirrors).partition("/")
    if not slash or not {".", ":"} & {*registry}:
        registry = _HUB
    host = urlsplit(proxy or f"//{registry}").hostname or ""
    return "" if is_address(host) else host


def query(name: str) -> str:
    """A question for a name's IPv4 address as DNS has it (RFC 1035, 4.1), as `printf` writes it."""
    header = _QUERY_ID + bytes((1, 0, 0, 1, 0, 0, 0, 0, 0, 0))
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    return "".join(f"\\x{byte:02x}" for byte in header + labels + bytes((0, 0, 1, 0, 1)))
