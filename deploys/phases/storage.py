"""Volumes: Rancher's local-path-provisioner, where no site's own storage is named."""

from deploys.engine.operation import phase
from deploys.parts.cluster import operations as kubectl
from deploys.parts.storage import deleted_volume_operations as volumes
from deploys.parts.storage import operations as operations
from deploys.run.context import Context, current
from gpuboot.cluster.helm_releases import rollout_part
from gpuboot.cluster.local_path import NAMESPACE, PROVISIONER, local_path
from gpuboot.cluster.readiness import Part


@phase("Storage")
def storage() -> None:
    """Install the provisioner, and make its StorageClass the default one unless there is another.

    Where a site stops wanting it, the phase `switched_off` takes it away once no volume needs it.
    """
    context = current()
    if not _enabled(context):
        return
    aside = context.settings.monitoring.storage
    volumes.expired(
        name="Delete what is left of volumes that were deleted long ago",
        folder=aside.path,
        days=aside.keep_removed_days,
    )
    if not context.node.leader:
        return
    kubectl.applied(
        name="Install the local-path provisioner",
        manifest=local_path(context.settings, context.lock),
        sentinel_workload=PROVISIONER,
    )
    operations.default_class(name="Set the default StorageClass")


def rollout_parts(context: Context) -> list[Part]:
    """The provisioner, where it is installed."""
    if not _enabled(context):
        return []
    return [rollout_part(NAMESPACE, [PROVISIONER])]


def _enabled(context: Context) -> bool:
    settings = context.settings.monitoring
    return settings.enabled and settings.storage.provisioner == "local-path"
