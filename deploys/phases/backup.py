"""Backups of etcd on the control planes, as parts of the phase that makes them."""

from deploys.parts.etcd import operations as etcd_backup
from deploys.parts.packages import operations as packages
from deploys.parts.packages.fact import KEYS
from deploys.run.context import Context
from gpuboot.cluster import backup, backup_copy


def prepared(context: Context) -> None:
    """What takes backups, before anything of Kubernetes is changed."""
    settings, platform = context.settings.backup, context.platform
    if context.node.role != "control_plane":
        return
    if needed := backup_copy.packages(settings):
        packages.installed(
            name="Install what copies backups of etcd off the node",
            versions=dict.fromkeys(platform.package_names(needed), ""),
            manager=platform.package_manager,
        )
    on = settings.enabled
    etcd_backup.scheduled(
        name="Schedule backups of etcd",
        program=backup.program(KEYS) if on else "",
        contents=backup.files(settings, context.node.name) if on else {},
        secrets=backup_copy.secrets(context.settings) if on else {},
    )


def take_first_backup(context: Context) -> None:
    """The first backup, once etcd runs, and its copy."""
    settings = context.settings.backup
    if context.node.role != "control_plane" or not settings.enabled:
        return
    etcd_backup.first(name="Take the first backup of etcd", folder=backup.FOLDER)
    if target := backup_copy.target(settings):
        etcd_backup.copied(
            name="Copy backups of etcd off the node", folder=backup.FOLDER, target=target
        )
