"""The file systems that images, pods, etcd and packages lie on: each where it really is.

`folders.txt` holds what the fact printed in mount namespaces with such file systems (Linux 6.18).
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploys.parts.node import fact as node
from gpuboot.config.inventory import Node
from gpuboot.config.settings import parse_settings
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.folders import Folders, parse
from gpuboot.preflight import folder_problems
from tests.unit.test_preflight import CLEAN, LEADER, WORKER

RECORDS = {
    part.partition("\n")[0]: part.partition("\n")[2].splitlines()
    for part in Path(__file__).with_name("folders.txt").read_text().split("== ")[1:]
}
GIB = 1024 * 1024
MEMBER = {"/etc/kubernetes/kubelet.conf": "https://10.0.0.1:6443"}
DOCKER = Node("d1", "d1", "10.0.0.5", "docker", 1, leader=False)


def recorded(name: str, *extra: str) -> Folders:
    return parse(Fields([*RECORDS[name], *extra], last=None))


def of(kind: str, *extra: str, free: int = 400 * GIB, size: int = 800 * GIB, inodes: str = "0 0",
       options: str = "rw,relatime") -> Folders:  # fmt: skip
    """A host whose containerd lies on a file system of its own."""
    line = f"folder\t/var/lib/containerd {size} {free} {inodes} {kind} {options} /data"
    return parse(Fields([line, *extra], last=None))


def causes(
    state: Folders, node: Node = WORKER, settings: dict[str, Any] | None = None, **changes: Any
) -> list[str]:
    host = replace(CLEAN, folders=state, **changes)
    problems = list(folder_problems.problems(node, host, parse_settings(settings or {})))
    assert all(remedy for _, remedy in problems)
    return [cause for cause, _ in problems]


def test_a_full_disk_of_containerds_is_named_beside_a_large_var() -> None:
    assert causes(recorded("full_containerd")) == [
        "has 899 MiB free for /var/lib/containerd (file system /var/lib/containerd); 20000 are "
        "needed"
    ]


def test_a_small_var_is_no_reason_where_images_have_a_disk_of_their_own() -> None:
    lines = [
        f"folder\t/var {10 * GIB} {4 * GIB} 0 0 ext4 rw /var",
        f"folder\t/var/lib/kubelet {10 * GIB} {4 * GIB} 0 0 ext4 rw /var",
        f"folder\t/var/lib/containerd {900 * GIB} {800 * GIB} 0 0 xfs rw /data",
    ]
    assert causes(parse(Fields(lines, last=None))) == []
    lines[0] = lines[0].replace(str(4 * GIB), str(GIB))
    lines[1] = lines[1].replace(str(4 * GIB), str(GIB))
    assert causes(parse(Fields(lines, last=None)), kubeconfigs=MEMBER) == [
        "has 1024 MiB free for /var and /var/lib/kubelet (file system /var); 2000 are needed"
    ]


def test_the_disk_of_etcd_counts_on_control_planes_alone() -> None:
    line = f"folder\t/var/lib/etcd {2 * GIB} {GIB} 0 0 ext4 rw /etcd"
    state = of("ext4", line)
    assert causes(state) == []
    assert causes(state, LEADER) == [
        "has 1024 MiB free for /var/lib/etcd (file system /etcd); 2000 are needed"
    ]


def test_a_disk_that_the_kubelet_would_call_full() -> None:
    """In per cent, by its defaults: a large disk with much room is under pressure as well."""
    state = of("ext4", free=100 * GIB)
    assert causes(state) == [
        "12 % of the file system /data are free, where /var/lib/containerd is: below 15 % the "
        "kubelet ends pods and takes none"
    ]
    eviction_settings = {"cluster": {"kubelet": {"evictionHard": {"imagefs.available": "20Gi"}}}}
    assert causes(state, settings=eviction_settings) == [], "the site has limits of its own"
    assert causes(state, kubeconfigs=MEMBER) == [], "the kubelet itself looks after it"
    assert causes(state, DOCKER) == []


def test_inodes_that_are_used_up() -> None:
    assert causes(recorded("inodes")) == [
        "the file system /var/lib/containerd has 2 of 100 inodes free, for /var/lib/containerd"
    ]
    assert causes(of("ext4", inodes="52428800 524288"), DOCKER) != []
    assert causes(of("btrfs", inodes="0 -")) == [], "btrfs has no fixed number"


def test_programs_that_could_not_run() -> None:
    assert causes(recorded("noexec")) == [
        "/var/lib/kubelet is mounted noexec (file system /var/lib/kubelet): pods could not run "
        "programs from their volumes",
        "/opt/cni/bin is mounted noexec (file system /opt/cni): the pod network's programs could "
        "not run",
    ]
    assert [cause.split()[0] for cause in causes(recorded("var_noexec"))] == [
        "/var/lib/dpkg",
        "/var/lib/kubelet",
    ]
    # seen: what lies on an overlay runs, whatever is below it
    assert causes(of("ext4", options="rw,noexec,nodev,nosuid")) == []


def test_a_file_system_that_is_read_only() -> None:
    assert causes(recorded("ro")) == [], "a worker has no etcd"
    assert causes(recorded("ro"), LEADER) == [
        "/var/lib/etcd is read-only: the file system /var/lib/etcd (tmpfs) is mounted ro"
    ]
    assert "/var/lib/containerd is read-only" in causes(of("xfs", options="ro,relatime"))[0]


@pytest.mark.parametrize(
    ("kind", "extra", "part"),
    [
        ("zfs", ["zfs\t2.1.5-1ubuntu6~22.04.4"], "ZFS 2.1.5-1ubuntu6~22.04.4"),
        ("nfs4", [], "nfs4, which overlayfs cannot work on"),
        ("overlay", [], "overlay, which"),
        ("fuse.glusterfs", [], "fuse.glusterfs, which"),
        ("vfat", [], "vfat, which"),
        ("xfs", ["xfs\t/data ftype=0"], "XFS made with ftype=0"),
    ],
)
def test_what_images_cannot_lie_on(kind: str, extra: list[str], part: str) -> None:
    [cause] = causes(of(kind, *extra))
    assert cause.startswith("/var/lib/containerd is on ")
    assert part in cause


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("ext4", []), ("btrfs", []), ("tmpfs", []), ("xfs", ["xfs\t/data ftype=1"]), ("xfs", []),
        ("zfs", ["zfs\t2.2.2-0ubuntu9.4"]), ("zfs", ["zfs\t2.3.1-1"]), ("zfs", []),
    ],
)  # fmt: skip
def test_what_images_can_lie_on(kind: str, extra: list[str]) -> None:
    assert causes(of(kind, *extra)) == []


def test_an_overlay_is_recorded_as_one_and_a_link_is_followed() -> None:
    [cause] = causes(recorded("overlay"))
    assert "/var/lib/containerd is on overlay" in cause
    assert recorded("link").folders["/var/lib/containerd"].mount == "/srv"
    assert causes(recorded("link")) == []


def test_docker_hosts_keep_images_in_two_places() -> None:
    line = f"folder\t/var/lib/docker {30 * GIB} {4 * GIB} 0 0 ext4 rw /docker"
    assert causes(of("ext4", line), DOCKER) == [
        "has 4096 MiB free for /var/lib/docker (file system /docker); 20000 are needed"
    ]
    assert causes(of("ext4", line)) == []


def test_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    script = Path(node.__file__).with_name("folders.sh")
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    paths = [str(tmp_path / "link" / "a" / "b"), str(tmp_path / "data")]
    command = f". {script}\nfolders {' '.join(paths)}"
    result = subprocess.run(
        ["sh", "-uc", command], capture_output=True, text=True, check=True, timeout=30
    )
    state = parse(Fields(result.stdout.splitlines(), last=None))
    first, second = (state.folders[path] for path in paths)
    assert first.mount == second.mount
    assert first.size_kib > 0
