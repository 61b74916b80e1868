"""Volumes of the local-path provisioner: folders on the nodes, which outlive their cluster."""

from __future__ import annotations

from pyinfra.context import host

from deploys.facts.files import Folder
from deploys.lib.answers import read
from deploys.lib.commands import Commands, warn
from deploys.lib.operation import operation


@operation()
def listed(folder: str) -> Commands:
    """Tell which volumes stay on this host. Deletes nothing.

    + folder: where local-path keeps them
    """
    volumes = read(Folder, path=folder)
    if volumes:
        warn(
            f"these volumes stay in {folder}; delete the folders by hand once "
            f"nobody needs what is in them: {', '.join(volumes)}"
        )
    host.noop(f"{len(volumes)} volumes stay in {folder}")
    yield from ()
