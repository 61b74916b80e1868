"""Volumes of the local-path provisioner: folders on the nodes, which outlive their cluster."""

import shlex

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands, inform, warn
from deploys.engine.operation import operation
from deploys.parts.files.fact import Folder
from deploys.parts.storage.fact import RemovedVolumes
from gpuboot.plan import Change

_NOTICE_KIB = 1 << 20  # less is not worth a line


@operation()
def reported(folder: str) -> Commands:
    """Tell which volumes stay on this host. Deletes nothing.

    + folder: where local-path keeps them
    """
    volumes = read(Folder, path=folder)
    if volumes:
        warn(
            f"these volumes stay in {folder}; delete the folders by hand once "
            f"nobody needs what is in them: {', '.join(volumes)}"
        )
    if aside := read(Folder, path=f"{folder}/.removed"):
        warn(f"folders of {len(aside)} deleted volumes stay in {folder}/.removed: delete them")
    host.noop(f"{len(volumes)} volumes stay in {folder}")
    yield from ()


@operation()
def expired(folder: str, days: int) -> Commands:
    """Ensure that folders of volumes that were deleted long ago are gone; tell what is kept.

    + folder: where local-path keeps volumes
    + days: how long those of deleted ones are kept
    """
    aside = read(RemovedVolumes, folder=folder, days=days)
    place, paths = (
        f"{folder}/.removed",
        [path for path in aside.folders if path not in aside.expired],
    )
    if paths and (aside.size_kib is None or aside.size_kib >= _NOTICE_KIB):
        size = "" if aside.size_kib is None else f" ({aside.size_kib / (1 << 20):.1f} GiB)"
        inform(
            f"folders of {len(paths)} deleted volumes{size} are kept in {place} for {days} days "
            "(monitoring.storage.keep_removed_days)"
        )
    if not aside.expired:
        host.noop(f"no folder of a deleted volume is older than {days} days")
        return
    for name in aside.expired:
        changes.record(Change(subject=f"deleted volume {place}/{name}", old="kept aside"))
    names = shlex.join(f"{place}/{name}" for name in aside.expired)
    yield StringCommand("rm -rf", names)
