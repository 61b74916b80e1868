"""The packages of Docker's repository that hosts without Kubernetes install.

Names, contents and dependencies as upstream's (docker/docker-ce-packaging); the programs are built
by `lab.build.software_docker`, which says what is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.build.debs import Deb
from lab.build.packages import PACKAGING, UNITS, Files, unit_scripts
from lab.build.software_docker import COMPOSE, DOCKER
from lab.debian_releases import DebianRelease

_CONFIGURATION: Files = {
    f"{UNITS}/docker.service": PACKAGING / "docker.service",
    f"{UNITS}/docker.socket": PACKAGING / "docker.socket",
    # The lab's alone: its runc is Debian's, which is older than time namespaces.
    "/etc/docker/daemon.json": '{"features": {"time-namespaces": false}}\n',
}


def docker(builds: Mapping[str, Path], release: DebianRelease) -> list[Deb]:
    """docker-ce, docker-ce-cli and docker-compose-plugin."""
    engine, version = ("dockerd", "docker-proxy"), f"5:{DOCKER}-{release.docker_revision}"
    plugin = "/usr/libexec/docker/cli-plugins/docker-compose"
    return [
        Deb(
            name="docker-ce",
            version=version,
            depends="containerd.io (>= 1.7.27), docker-ce-cli, iptables, libc6 (>= 2.34)",
            description="Docker: the open-source application container engine",
            files={**{f"/usr/bin/{name}": builds[name] for name in engine}, **_CONFIGURATION},
            conffiles=("/etc/docker/daemon.json",),
            modes={f"/usr/bin/{name}": 0o755 for name in engine},
            scripts=_scripts(),
            conflicts="docker.io",
            replaces="docker.io",
            section="devel",
        ),
        Deb(
            name="docker-ce-cli",
            version=version,
            depends="libc6 (>= 2.34)",
            description="Docker CLI: the open-source application container engine",
            files={"/usr/bin/docker": builds["docker"]},
            modes={"/usr/bin/docker": 0o755},
            conflicts="docker.io",
            replaces="docker.io",
            section="devel",
        ),
        Deb(
            name="docker-compose-plugin",
            version=f"{COMPOSE}-{release.docker_revision}",
            depends="docker-ce-cli",
            description="Docker Compose (V2) plugin for the Docker CLI.",
            files={plugin: builds["docker-compose"]},
            modes={plugin: 0o755},
            section="devel",
        ),
    ]


def _scripts() -> dict[str, str]:
    scripts = unit_scripts("docker.socket", "docker.service")
    # the socket belongs to this group
    group = "getent group docker >/dev/null || groupadd --system docker\n"
    head, _, remainder = scripts["postinst"].partition("set -e\n")
    return {**scripts, "postinst": f"{head}set -e\n{group}{remainder}"}
