"""Volumes of the local-path provisioner: folders on the nodes, which outlive their cluster."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import logger
from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from deploys.facts.files import Folder
from deploys.lib.waiting import executing


@operation(is_idempotent=True)
def kept(folder: str) -> Generator[StringCommand, None, None]:
    """Tell which volumes stay on this host. Deletes nothing.

    + folder: where local-path keeps them
    """
    found = host.get_fact(Folder, path=folder)
    if found and executing(host):
        logger.warning(
            f"{host.print_prefix}these volumes stay in {folder}; delete the folders by hand once "
            f"nobody needs what is in them: {', '.join(found)}"
        )
    host.noop(f"{len(found)} volumes stay in {folder}")
    yield from ()
