"""Preflight of the file systems that images, pods, etcd and packages lie on.

What overlayfs cannot lie on: the kernel's Documentation/filesystems/overlayfs.rst (no file system
that asks a server whether a name still holds, none without file types in directories), and OpenZFS
before 2.2.0 (its release notes). Programs run from an overlay over a file system that is mounted
noexec or nodev, so neither matters for containerd's folder; seen with Linux 6.18.
"""

import re
from collections.abc import Iterator

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.hosts.folders import FileSystem, Folders
from gpuboot.hosts.node_state import NodeState

CONTAINERD, DOCKER = "/var/lib/containerd", "/var/lib/docker"
KUBELET, ETCD, CNI = "/var/lib/kubelet", "/var/lib/etcd", "/opt/cni/bin"
_PACKAGES = ("/usr", "/var/lib/dpkg")
# MiB for what is on a file system of its own: packages and logs, pods' own files, etcd's database
_OTHERS_MIB = 2000
# the kubelet's defaults of evictionHard, in per cent that are free (kubernetes.io, "Node-pressure
# Eviction"): below, it takes no pods and ends those that it has
_EVICTION = {KUBELET: 10, CONTAINERD: 15}
_INODES = 5
_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "lustre", "gpfs", "fuse", "afs", "ncp", "beegfs")
_NO_UPPER = ("overlay", "aufs", "ecryptfs", "vfat", "msdos", "exfat", "ntfs", "squashfs")
_ZFS = (2, 2)


def problems(node: Node, state: NodeState, settings: Settings) -> Iterator[tuple[str, str]]:
    """Cause and remedy of each file system that something will not fit on, or not work on."""
    cluster = node.role != "docker"
    images = [CONTAINERD] if cluster else [DOCKER, CONTAINERD]
    used = [*images, "/var", *_PACKAGES]
    if cluster:
        used += [KUBELET, CNI]
    if node.role == "control_plane":
        used.append(ETCD)
    at = {path: item for path, item in state.folders.folders.items() if path in used}
    yield from _room(at, images, settings.preflight.min_disk_mib)
    if cluster and not state.kubeconfigs and "evictionHard" not in settings.cluster.kubelet:
        yield from _pressure(at)
    yield from _inodes(at)
    for path, file_system in at.items():
        yield from _mounted(path, file_system)
    for path in images:
        if path in at:
            yield from _overlay(path, at[path], state.folders)


def _by_mount(at: dict[str, FileSystem]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for path, item in at.items():
        paths.setdefault(item.mount, []).append(path)
    return paths


def _room(at: dict[str, FileSystem], images: list[str], min_mib: int) -> Iterator[tuple[str, str]]:
    for mount, paths in _by_mount(at).items():
        of_images = [path for path in images if path in paths]
        needed = min_mib if of_images else min(min_mib, _OTHERS_MIB)
        free = at[paths[0]].free_kib // 1024
        names = of_images or [path for path in paths if path != "/usr"]
        if names and free < needed:
            yield (
                f"has {free} MiB free for {' and '.join(names)} (file system {mount}); {needed} "
                "are needed",
                "make room there, put a larger file system there, or lower "
                "settings.preflight.min_disk_mib if you know better",
            )


def _pressure(at: dict[str, FileSystem]) -> Iterator[tuple[str, str]]:
    """The kubelet looks at what is free in per cent, and would take no pods."""
    for mount, paths in _by_mount(at).items():
        limits = {path: _EVICTION[path] for path in paths if path in _EVICTION}
        item = at[paths[0]]
        if not limits or not item.size_kib:
            continue
        path = max(limits, key=limits.__getitem__)
        free = 100 * item.free_kib // item.size_kib
        if free < limits[path]:
            yield (
                f"{free} % of the file system {mount} are free, where {path} is: below "
                f"{limits[path]} % the kubelet ends pods and takes none",
                "make room there, or set cluster.kubelet.evictionHard to what the machine is to "
                'keep free, e.g. {"nodefs.available": "10Gi", "imagefs.available": "20Gi"}',
            )


def _inodes(at: dict[str, FileSystem]) -> Iterator[tuple[str, str]]:
    for mount, paths in _by_mount(at).items():
        item = at[paths[0]]
        if item.inodes and 100 * item.inodes_free < _INODES * item.inodes:
            yield (
                f"the file system {mount} has {item.inodes_free} of {item.inodes} inodes free, "
                f"for {' and '.join(paths)}",
                f"remove small files there (`du --inodes -xd3 {mount} | sort -n`), or make the "
                "file system with more inodes",
            )


def _mounted(path: str, item: FileSystem) -> Iterator[tuple[str, str]]:
    remount = f"`mount -o remount,{{}} {item.mount}` there, and the same in /etc/fstab"
    if "ro" in item.options:
        yield (
            f"{path} is read-only: the file system {item.mount} ({item.kind}) is mounted ro",
            "find out why (dmesg: a broken disk is mounted so as well), then "
            f"{remount.format('rw')}",
        )
    reasons = {
        KUBELET: "pods could not run programs from their volumes",
        CNI: "the pod network's programs could not run",
        "/var/lib/dpkg": "dpkg could not run the scripts of packages",
    }
    if "noexec" in item.options and path in reasons:
        yield (
            f"{path} is mounted noexec (file system {item.mount}): {reasons[path]}",
            remount.format("exec"),
        )


def _overlay(path: str, item: FileSystem, folders: Folders) -> Iterator[tuple[str, str]]:
    """Images are layers of overlayfs."""
    cause = ""
    if item.kind == "zfs":
        version = tuple(map(int, re.findall(r"\d+", folders.zfs)[:2]))
        if version and version < _ZFS:
            cause = f"ZFS {folders.zfs}, which overlayfs works on from 2.2 on"
    elif item.kind.startswith((*_NETWORK, *_NO_UPPER)):
        cause = f"{item.kind}, which overlayfs cannot work on"
    elif "ftype=0" in item.options:
        cause = "XFS made with ftype=0, which overlayfs cannot work on"
    if cause:
        yield (
            f"{path} is on {cause} (file system {item.mount}): no image could be unpacked",
            f"mount a file system of ext4 or XFS at {path} (on ZFS: of a zvol)",
        )
