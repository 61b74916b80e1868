"""Lives: what machines were before the first deploy, each a small script that dresses one for it.

`NAME.sh` beside this file defines three functions: `wear` dresses a machine, `works` fails where
what the life has brought does not work any more, and `off` undresses a machine that nothing was
deployed to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.state import LabError

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Life:
    """What a machine was used for, and what a run is expected to do with it.

    + name: of its script, and in `scripts/lab --life NAME`
    + description: what the machine has
    + refusal: a part of the cause that preflight names; "" where gpuboot is deployed
    + machines: those of a lab that wear it: every one, or those with GPUs
    + packages: of Debian, which it installs
    + docker: it needs Docker's packages
    """

    name: str
    description: str
    refusal: str = ""
    machines: Literal["every", "gpus"] = "every"
    packages: tuple[str, ...] = ()
    docker: bool = False

    @property
    def script(self) -> Path:
        return FOLDER / f"{self.name}.sh"


# Each is worn after those before it.
LIVES = (
    Life(
        "cloud-hosts",
        "cloud-init writes /etc/hosts anew at each boot (manage_etc_hosts)",
        packages=("cloud-init",),
    ),
    Life("sysctl", "/etc/sysctl.d/99-*.conf turns forwarding off"),
    Life(
        "swap",
        "a swap partition that systemd finds by itself, and zram-generator",
        packages=("systemd-zram-generator",),
    ),
    Life("openntpd", "openntpd keeps the clock instead of chrony", packages=("openntpd",)),
    Life(
        "ufw-open",
        "ufw is active, with the ports open that the nodes need",
        packages=("ufw",),
    ),
    Life(
        "docker",
        "Docker CE with running containers, and NVIDIA's container toolkit by its guide",
        machines="gpus",
        docker=True,
    ),
    Life(
        "old-driver",
        "an old driver from another archive that was removed by halves",
        machines="gpus",
    ),
    Life(
        "unattended-upgrades",
        "unattended-upgrades and needrestart",
        packages=("unattended-upgrades", "needrestart"),
    ),
    Life("umask-german", "root has umask 077 and a German locale", packages=("locales",)),
    Life(
        "ufw",
        "ufw is active and lets in SSH alone",
        refusal="its firewall drops",
        packages=("ufw",),
    ),
    Life("foreign-cni", "another network's CNI configuration", refusal="05-cilium.conflist"),
    Life("foreign-etcd", "the data of another etcd", refusal="/var/lib/etcd"),
    Life("small-disk", "containerd's folder is a small disk, nearly full", refusal="containerd"),
    Life("moby", "containers by Azure's moby packages", refusal="moby"),
)
# what the mirror of used machines has for them, be they worn or not
PACKAGES = tuple(name for life in LIVES for name in life.packages)


def lives(names: Sequence[str]) -> list[Life]:
    """The lives called `names`, in the order in which they are worn; those deployed to for none.

    Raises `LabError` for a name that no life has.
    """
    if unknown := sorted(set(names) - {life.name for life in LIVES}):
        names_text = ", ".join(life.name for life in LIVES)
        raise LabError(f"no life is called {', '.join(unknown)}; there are: {names_text}")
    return [life for life in LIVES if (life.name in names if names else not life.refusal)]
