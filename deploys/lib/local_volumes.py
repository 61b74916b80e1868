"""Volumes that are folders of a node, where the node is installed anew."""

from __future__ import annotations

import json
import shlex

from pyinfra.api.host import Host

from deploys.lib import remote
from deploys.lib.kubectl import KUBECTL
from gpuboot.kubernetes.storage import LocalVolume, volumes_on


def lost(leader: Host, there: Host, node: str) -> list[LocalVolume]:
    """The volumes that the cluster has on a node, and whose folders are not on that host.

    Raises `remote.RemoteError`.
    """
    volumes = volumes_on(node, json.loads(remote.run(leader, f"{KUBECTL} get pv -o json")))
    if not volumes:
        return []
    paths = " ".join(shlex.quote(volume.path) for volume in volumes)
    listed = f'for path in {paths}; do [ -e "$path" ] || printf "%s\\n" "$path"; done'
    missing = remote.run(there, listed).splitlines()
    return [volume for volume in volumes if volume.path in missing]


def made(volume: LocalVolume) -> str:
    """The command that makes its folder as the provisioner does, which the kubelet does not.

    The kubelet would make it for root alone, and most containers are not root.
    """
    return f"mkdir -m 0777 -p {shlex.quote(volume.path)}"
