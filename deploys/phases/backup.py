"""Backups of etcd on the control planes, as parts of the phase that makes them."""

from __future__ import annotations

from deploys.operations import etcd_backup
from deploys.run.context import Context
from gpuboot.kubernetes import backup


def prepared(context: Context) -> None:
    """What takes backups, before anything of Kubernetes is changed."""
    settings = context.settings.backup
    if context.node.role != "control_plane":
        return
    etcd_backup.scheduled(
        name="Schedule backups of etcd",
        program=backup.program() if settings.enabled else "",
        contents=backup.files(settings) if settings.enabled else {},
    )


def begun(context: Context) -> None:
    """The first backup, once etcd runs."""
    settings = context.settings.backup
    if context.node.role == "control_plane" and settings.enabled:
        etcd_backup.first(name="Take the first backup of etcd", folder=settings.folder)
