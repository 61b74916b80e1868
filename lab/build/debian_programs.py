"""Programs that the lab takes from Debian 12 as they are, unpacked into one folder of the store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lab.build.base import apt_options
from lab.build.recipe import BuildContext, Recipe
from lab.debian_releases import BOOKWORM
from lab.host import run

# For nodes and images: programs, and for images the libraries they are linked with.
PACKAGES = tuple(
    """
    runc libseccomp2 prometheus-node-exporter busybox-static
    nftables iptables conntrack libnftables1 libnftnl11 libmnl0 libjansson4 libgmp10 libedit2
    libxtables12 libip4tc2 libip6tc2 libnetfilter-conntrack3 libnfnetlink0 libbsd0 libmd0
    libtinfo6 libc6
    """.split()  # noqa: SIM905 - as in lab.base
)

PROGRAMS = {
    "runc": "root/usr/sbin/runc",
    "node_exporter": "root/usr/bin/prometheus-node-exporter",
    "busybox": "root/bin/busybox",
    "nft": "root/usr/sbin/nft",
    "xtables-nft-multi": "root/usr/sbin/xtables-nft-multi",
    "conntrack": "root/usr/sbin/conntrack",
    "debian-root": "root",
    "debian-versions": "versions",
}


def recipe() -> Recipe:
    """The packages of the newest point release when the folder is made."""
    inputs: tuple[str | Path, ...] = (BOOKWORM.codename, *PACKAGES, Path(__file__))
    return Recipe("debian-programs", PROGRAMS, inputs, _make, seconds=15)


def _make(build: BuildContext) -> None:
    options = apt_options(BOOKWORM, build.work / "apt", build.work / "status")
    run(["apt-get", *options, "download", *PACKAGES], cwd=build.work, log=build.log)
    root = build.out / "root"
    root.mkdir()
    lines = []
    for deb in sorted(build.work.glob("*.deb")):
        run(["dpkg-deb", "--extract", str(deb), str(root)])
        fields = run(["dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(deb)])
        lines.append(fields.strip() + "\n")
    (build.out / "versions").write_text("".join(lines))


def versions(programs: Mapping[str, Path]) -> dict[str, str]:
    """Upstream's version of each package in the folder, as in `0.25.0`; `programs`: build_all's."""
    lines = programs["debian-versions"].read_text().splitlines()
    return {name: upstream(version) for name, version in (line.split() for line in lines)}


def upstream(version: str) -> str:
    """A Debian version without epoch, revision, and Debian's own suffixes (+ds, ~…)."""
    bare = version.split(":", 1)[-1].rsplit("-", 1)[0]
    return re.split(r"[+~]", bare)[0]
