"""Downloads in the background: they go on while the driver's kernel modules are built."""

from deploys.engine.operation import phase
from deploys.parts.packages import operations as packages
from deploys.phases import node_software as parts
from deploys.phases.repositories import add_repository
from deploys.run.context import current
from gpuboot.cluster.kubeadm import packages as kubernetes_packages


@phase("Downloads")
def downloads() -> None:
    """Start to download the packages of later phases, those that are needed last first.

    A host without a driver to build needs containerd at once: then nobody downloads it twice.
    """
    context = current()
    # no loop: pyinfra tells calls in one line apart by their number, which differs by host
    add_repository(context, "docker")
    if context.node.gpus:
        add_repository(context, "toolkit")
    add_repository(context, "kubernetes")
    packages.fetched(
        name="Start downloads of packages",
        versions={
            **kubernetes_packages(context.lock),
            **parts.toolkit(context),
            **parts.containerd(context),
        },
        manager=context.platform.package_manager,
    )
