"""Volumes that are folders of a node: where it is installed anew, and in a restore of etcd."""

import shlex
from collections.abc import Mapping, Sequence

from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import remote
from deploys.engine.connections import reach
from deploys.parts.cluster.kubectl import KUBECTL
from gpuboot.cluster.local_volumes import FORMAT, Folder, LocalVolume, parse, parse_folders
from gpuboot.hosts.fact_output import answer, framed
from gpuboot.templates import render

_LIST = f"{KUBECTL} --request-timeout=20s get pv -o {shlex.quote(FORMAT)}"


def of_cluster(leader: Host) -> list[LocalVolume]:
    """The local volumes of the cluster. Raises `remote.RemoteError`, or ValueError."""
    return parse("\n".join(read_lines(leader, _LIST)))


def read_lines(target: Host, command: str) -> list[str]:
    """What a command prints. Raises `remote.RemoteError`, or ValueError."""
    return answer(remote.run(target, framed(command)).splitlines()).lines


def missing_volumes(leader: Host, machine: Host, node: str) -> list[LocalVolume]:
    """The volumes that the cluster has on a node, and whose folders are not on that host.

    Raises `remote.RemoteError`.
    """
    volumes = [item for item in of_cluster(leader) if item.node == node and item.is_local_path]
    if not volumes:
        return []
    paths = " ".join(shlex.quote(volume.path) for volume in volumes)
    script = f'for path in {paths}; do [ -e "$path" ] || printf "%s\\n" "$path"; done'
    missing = remote.run(machine, script).splitlines()
    return [volume for volume in volumes if volume.path in missing]


def create_folder_command(volume: LocalVolume) -> str:
    """The command that makes a volume's folder as the provisioner does; no kubelet makes it.

    The kubelet would make it for root alone, and most containers are not root.
    """
    return f"mkdir -m 0777 -p {shlex.quote(volume.path)}"


def look(
    state: State,
    volumes: Sequence[LocalVolume],
    hosts: Mapping[str, str],
    since: int,
    mode: str = "look",
) -> dict[str, dict[str, Folder]]:
    """What nodes have of volumes' folders: node -> path -> folder; only of those that answer.

    + hosts: node -> inventory name
    + since: see `gpuboot.cluster.local_volumes.made_since`
    + mode: `back`: move those back that were moved aside, and make those that are gone
    """
    folders: dict[str, dict[str, Folder]] = {}
    script = shlex.quote(render("kubernetes/volume-folders.sh"))
    for node in dict.fromkeys(item.node for item in volumes if item.node in hosts):
        target = state.inventory.get_host(hosts[node])
        paths = shlex.join(item.path for item in volumes if item.node == node)
        if not reach(target):
            continue
        try:
            command = f"sh -c {script} gpuboot-volume-folders {mode} {since} {paths}"
            folders[node] = parse_folders(read_lines(target, command))
        except (PyinfraError, OSError, ValueError):
            continue
    return folders
