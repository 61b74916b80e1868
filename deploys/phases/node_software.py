"""What a host has below Kubernetes: packages and versions of driver, toolkit and containerd."""

from deploys.run.context import Context
from gpuboot.cluster.node_upgrade import mismatched
from gpuboot.hosts import driver_packages, fabric, gpu_models, prerequisites
from gpuboot.hosts.driver_packages import Flavour

_JOINED = "/etc/kubernetes/kubelet.conf"


def driver_version(context: Context) -> str:
    """Version of the driver that the current host is to run; "" where it is not gpuboot's."""
    is_managed = context.node.gpus and context.settings.driver.enabled
    return context.lock.driver.version if is_managed else ""


def driver(context: Context) -> dict[str, str]:
    """The driver's packages, with the fabric manager's, and the pattern of their versions."""
    version = driver_version(context)
    if not version:
        return {}
    names = driver_packages.driver_packages(
        context.platform, version, flavour(context), bool(nvswitches(context))
    )
    return dict.fromkeys(names, f"{version}-*")


def flavour(context: Context) -> Flavour:
    """Open or proprietary kernel modules, by the GPUs that preflight saw on this host."""
    return gpu_models.flavour(
        context.state.gpu_ids,
        context.settings.driver.modules,
        context.lock.driver,
    )


def nvswitches(context: Context) -> fabric.Fabric:
    """The NVSwitches of this host that a fabric manager looks after."""
    return fabric.managed(context.state, context.settings.driver.fabric_manager)


def containerd(context: Context) -> dict[str, str]:
    """containerd's package with the pattern of its versions."""
    return {"containerd.io": f"{context.lock.containerd.version}-*"}


def toolkit(context: Context) -> dict[str, str]:
    """The container toolkit's packages with their version; {} on hosts without GPUs."""
    return (
        dict.fromkeys(prerequisites.TOOLKIT, context.lock.toolkit.version)
        if context.node.gpus
        else {}
    )


def is_node(context: Context) -> bool:
    """Whether preflight found the current host in a cluster."""
    return context.node.role != "docker" and _JOINED in context.state.kubeconfigs


def upgraded_as_node(context: Context) -> bool:
    """Whether another driver, toolkit or containerd comes to a node of a living cluster.

    Then `deploys.phases.node_upgrades` installs them there, and no other phase does.
    """
    state, version = context.state, driver_version(context)
    if not is_node(context):
        return False
    packages = driver(context) | toolkit(context) | containerd(context)
    other_driver = bool(version) and state.driver_loaded != version
    return other_driver or bool(mismatched(packages, state.packages))
