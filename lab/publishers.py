"""A lab on the publishers' own packages, charts and images: what it needs, and from where.

Such a lab (`scripts/lab --upstream`) has from its mirror only what is simulated. It has never run:
it was written where there is no internet.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.preflight.connectivity import endpoints
from lab.build.base import ARCHIVE_KEYRING, archives
from lab.debian_releases import DebianRelease
from lab.state import MIRROR_NAME, MIRROR_URL

# What the lab's mirror keeps: the driver, and the images and charts of NVIDIA that run on it. The
# real ones find no GPU on the simulated driver.
RECIPES = ("gpusim-driver", "gpusim-stand-ins", "nvidia-device-plugin", "debian-programs")
REGISTRY = "nvcr.io"
CHARTS = ("gpu-operator", "dcgm-exporter")
_MIRRORS = {
    "apt": {"cuda": {"url": MIRROR_URL}},
    "images": {REGISTRY: MIRROR_URL},
    "charts": {"nvidia": MIRROR_URL, "dcgm-exporter": MIRROR_URL},
}

CONNECT_TIMEOUT_S = 10
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
# systemd-resolved lists its own servers in the second; the first then names itself alone
_RESOLV_CONF = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))


def missing() -> Iterator[str]:
    """What the host lacks for such a lab, each with what to do about it."""
    if _FORWARDING.read_text().strip() != "1":
        yield "IP forwarding, for the machines' way out: sysctl -w net.ipv4.ip_forward=1"
    if not name_servers():
        files = " or ".join(map(str, _RESOLV_CONF))
        yield f"a name server that the machines can ask too: {files} names none but this host"
    addresses = publishers()
    if silent := unreachable(addresses):
        silent_names = "; ".join(f"{name} ({', '.join(addresses[name])})" for name in silent)
        yield (
            f"the internet: no connection to {silent_names}. "
            "Without --upstream the lab builds all of it, and needs none of these"
        )


def publishers() -> dict[str, list[str]]:
    """`host:port` -> what the machines download from there. Raises `LabError` as `archives`."""
    node = Node("node1", "node1", "192.0.2.1", "control_plane", gpus=1, leader=True)
    needed = endpoints(parse_settings({"mirrors": _MIRRORS}), node)
    del needed[f"{MIRROR_NAME}:443"]
    for url in archives():
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        needed[f"{parts.hostname}:{port}"] = ["Debian packages"]
    return needed


def unreachable(addresses: Iterable[str]) -> list[str]:
    """The `host:port` that do not take a connection from this host, sorted."""
    names = sorted(addresses)
    with ThreadPoolExecutor(max_workers=8) as pool:
        reached = list(pool.map(_connects, names))
    return [name for name, ok in zip(names, reached, strict=True) if not ok]


def _connects(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def name_servers() -> list[str]:
    """The host's name servers that machines can reach as well: loopback addresses are not."""
    for path in _RESOLV_CONF:
        lines = path.read_text().splitlines() if path.exists() else []
        servers = [line.split()[1] for line in lines if line.startswith("nameserver ")]
        usable = [
            server
            for server in servers
            if not ipaddress.ip_address(server.split("%")[0]).is_loopback
        ]
        if usable:
            return usable
    return []


def debian_sources(release: DebianRelease) -> str:
    """A machine's apt sources: the archive that the host uses, and its security updates."""
    archive, security = archives()
    name = release.codename
    suites: Mapping[str, str] = {archive: f"{name} {name}-updates", security: f"{name}-security"}
    return "\n".join(
        f"Types: deb\nURIs: {url}\nSuites: {suite_names}\nComponents: main\n"
        f"Signed-By: {ARCHIVE_KEYRING}\n"
        for url, suite_names in suites.items()
    )
