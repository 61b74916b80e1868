"""Whether a lab can run on this host: checked before anything is made."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.state import LabError, cache_dir, state_dir

DISK_FIRST_GB = 40  # Go's module and build caches, all builds, images and three machines
DISK_AGAIN_GB = 12  # three machines with their images, when everything is built
MEMORY_GIB = 5
COMMANDS = {
    "debootstrap": "debootstrap",
    "dpkg-deb": "dpkg",
    "dpkg-scanpackages": "dpkg-dev",
    "gcc": "gcc",
    "gpg": "gnupg",
    "ip": "iproute2",
    "nft": "nftables",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "systemd-nspawn": "systemd-container",
    "unshare": "util-linux",
}
# What machines and their networks are made of, tried in namespaces that end with the command.
_TRIALS = {
    "namespaces (mount, pid, net, uts, ipc)": "true",
    "mounts": "mount -t tmpfs tmpfs /mnt",
    "bridges": "ip link add gbtry type bridge",
    "veth pairs": "ip link add gbtry0 type veth peer name gbtry1",
    "vxlan": "ip link add gbtry0 type veth peer name gbtry1 && "
    "ip link add gbtry2 type vxlan id 1 dev gbtry0 dstport 8472",
    "nftables": "nft add table inet gbtry",
    "overlayfs": "mount -t tmpfs tmpfs /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/m && "
    "mount -t overlay overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w /mnt/m",
}


def require(extra: Iterable[str] = ()) -> None:
    """Raise `LabError` that names everything the host lacks; return when it lacks nothing.

    + extra: what it lacks besides, for this kind of lab
    """
    problems = [*missing(), *extra]
    if problems:
        text = "\n".join(f"  - {problem}" for problem in problems)
        raise LabError(f"the lab cannot run on this host:\n{text}")


def missing() -> Iterator[str]:
    """What the host lacks, each with what to do about it."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        yield f"Linux on x86_64; this is {platform.system()} on {platform.machine()}"
        return
    if os.geteuid() != 0:
        yield "root: machines need namespaces and mounts. Run it with sudo"
        return
    absent = {package for name, package in COMMANDS.items() if shutil.which(name) is None}
    if absent:
        yield f"Debian packages: apt-get install {' '.join(sorted(absent))}"
    yield from _cgroups()
    yield from _trials()
    yield from _room()


def _trials() -> Iterator[str]:
    for subject, script in _TRIALS.items():
        command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork"]
        try:
            result = subprocess.run([*command, "sh", "-c", script], capture_output=True, text=True)
        except FileNotFoundError:
            return  # `missing` names its package
        if result.returncode != 0:
            reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
            yield (
                f"{subject}: {reason}. In a container, run it privileged, or use a virtual machine"
            )


def _cgroups() -> Iterator[str]:
    needed = {"cpu", "cpuset", "memory", "pids"}
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    if unified.exists():
        controllers = set(unified.read_text().split())
    else:
        controllers = {path.name for path in Path("/sys/fs/cgroup").glob("*") if path.is_dir()}
        controllers |= {part for name in controllers for part in name.split(",")}
    if needed - controllers:
        missing_controllers = ", ".join(sorted(needed - controllers))
        yield f"cgroup controllers {missing_controllers}: /sys/fs/cgroup does not have them"
    elif not os.access("/sys/fs/cgroup", os.W_OK):
        yield "a writable /sys/fs/cgroup"


def _room() -> Iterator[str]:
    needed_gb = DISK_AGAIN_GB if is_complete() else DISK_FIRST_GB
    for folder, variable in ((cache_dir(), "GPUBOOT_CACHE"), (state_dir(), "GPUBOOT_STATE")):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free / 1e9
        if free < needed_gb:
            yield (
                f"{needed_gb} GB of free disk for {folder}; there are {free:.0f}. "
                f"{variable} names another place"
            )
        kind = _filesystem(existing)
        if kind in ("overlayfs", "tmpfs", "nfs") and folder == state_dir():
            yield (
                f"a file system that overlayfs can lie on for {folder}; it is on {kind}. "
                f"{variable} names another place"
            )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if memory < MEMORY_GIB:
        yield f"{MEMORY_GIB} GiB of memory; there are {memory:.1f}"


def _filesystem(path: Path) -> str:
    command = ["stat", "--file-system", "--format=%T", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def is_complete() -> bool:
    """Whether everything was built once on this host."""
    return _marker().exists()


def note_complete() -> None:
    """Remember that everything is built."""
    _marker().parent.mkdir(parents=True, exist_ok=True)
    _marker().touch()


def _marker() -> Path:
    return cache_dir() / "complete"
