"""All package repositories of a host, and its packages in one transaction."""

from deploys.engine.operation import phase
from deploys.parts.packages import operations
from deploys.phases import base, dcgm, drivers
from deploys.phases import node_software as parts
from deploys.phases.repositories import add_repositories
from deploys.run.context import Context, current
from gpuboot.cluster import kubeadm
from gpuboot.hosts import prerequisites


@phase("Packages")
def packages() -> None:
    """Install at once what the phases that follow need, each of which says what that is.

    A node in use keeps its driver, toolkit, containerd and Kubernetes until it is its turn in
    `node_upgrades`; what it needs then is downloaded in the background.
    """
    context = current()
    manager = context.platform.package_manager
    add_repositories(context)
    prerequisite_packages, held_packages = _prerequisites(context), _held_packages(context)
    if parts.is_node(context):
        operations.installed(
            name="Install prerequisites of Kubernetes",
            versions=prerequisite_packages,
            manager=manager,
        )
        operations.fetched(
            name="Start downloads of packages", versions=held_packages, manager=manager
        )
        return
    if parts.driver_version(context):
        drivers.prepared(context)
    operations.installed(
        name="Install all packages in one transaction",
        versions={**prerequisite_packages, **held_packages, **_gpu_packages(context)},
        manager=manager,
        hold=list(held_packages),
    )


def _prerequisites(context: Context) -> dict[str, str]:
    names = [name for name in prerequisites.KUBERNETES if name not in prerequisites.FIRST]
    return dict.fromkeys(base.package_names(context, names), "")


def _held_packages(context: Context) -> dict[str, str]:
    """Packages whose versions the lock alone decides, in the order of their downloads."""
    return {
        **kubeadm.packages(context.lock),
        **parts.toolkit(context),
        **parts.containerd(context),
    }


def _gpu_packages(context: Context) -> dict[str, str]:
    readers = dcgm.READERS if context.node.gpus and context.settings.dcgm == "host" else {}
    return {**drivers.packages_beside_others(context), **readers}
