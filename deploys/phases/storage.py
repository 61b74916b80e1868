"""Volumes: Rancher's local-path-provisioner, where no site's own storage is named."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from deploys.operations import kubectl
from deploys.operations import storage as operations
from deploys.run.context import current
from gpuboot.kubernetes.storage import NAMESPACE, PROVISIONER, local_path


@deploy("Storage")
def storage() -> None:
    """Install the provisioner, and make its StorageClass the default one unless there is another.

    A site that stops wanting it removes it by hand: volumes that hang on it hold data.
    """
    context = current()
    settings = context.settings.monitoring
    enabled = settings.enabled and settings.storage.provisioner == "local-path"
    if not (context.node.leader and enabled):
        return
    kubectl.applied(
        name="Install the local-path provisioner",
        manifest=local_path(context.settings, context.lock),
        sentinel_workload=PROVISIONER,
    )
    operations.default_class(name="Set the default StorageClass")
    kubectl.workloads_ready(
        name="Wait until local-path-provisioner is ready",
        namespace=NAMESPACE,
        required=[PROVISIONER],
        timeout_s=settings.timeout_s,
    )
