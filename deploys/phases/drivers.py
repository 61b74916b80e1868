"""The NVIDIA driver on GPU nodes: installed as asked, loaded, and showing every GPU."""

from deploys.engine.operation import phase
from deploys.parts.driver import nvswitch_operations as nvswitches
from deploys.parts.driver import operations as driver
from deploys.parts.files import operations as files
from deploys.parts.gpu_exclusion import operations as gpu_exclusion
from deploys.parts.kernel import operations as kernel
from deploys.parts.packages import dnf_operations as dnf
from deploys.parts.packages import operations as packages
from deploys.parts.secure_boot import operations as secure_boot
from deploys.parts.units import operations as units
from deploys.phases import node_software as parts
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current
from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.hosts import driver_packages, fabric, kernels, nvswitch_errors

NOUVEAU = """\
# Written by gpuboot: no other driver can share a GPU with NVIDIA's
blacklist nouveau
options nouveau modeset=0
blacklist nova_core
blacklist nvidiafb
"""
NVLINK5 = "# Written by gpuboot: the way of the fabric manager to the NVSwitches\n" + "".join(
    f"{name}\n" for name in fabric.MODULES
)


@phase("Drivers")
def drivers() -> None:
    """Install and load the driver; nothing happens on nodes without GPUs."""
    context = current()
    settings = context.settings.driver
    if not context.node.gpus:
        return
    version = parts.driver_version(context)
    if version:
        _install(context, version)
        if not parts.upgraded_as_node(context):
            _load(context, version)
        if units_to_start := services(context):
            units.running(name="Start the driver's services", units=units_to_start)
    if parts.nvswitches(context) == "nvswitch":
        nvswitches.watched(
            name="Tell Prometheus of fatal errors of NVSwitches",
            program=nvswitch_errors.program(),
            contents=nvswitch_errors.units(context.node.name, METRICS_FOLDER),
        )
    gpu_exclusion.excluded(
        name="Have the driver leave out GPUs that are not the cluster's",
        cluster_gpus=context.node.cluster_gpus,
        may_reboot=settings.reboot == "when-needed",
        timeout_s=settings.reboot_timeout_s,
        in_use=parts.is_node(context),
        _serial=True,
    )
    driver.checked(
        name=f"Check that nvidia-smi lists every GPU, under driver {version or '(any)'}",
        version=version,
        gpus=context.node.gpus,
    )


def _load(context: Context, version: str) -> None:
    settings = context.settings.driver
    if settings.secure_boot == "mok" and context.state.secure_boot.enforced:
        secure_boot.enrolled(
            name="Have DKMS's key enrolled for Secure Boot",
            may_reboot=settings.reboot == "when-needed",
            timeout_s=settings.reboot_timeout_s,
            _serial=True,
        )
    driver.loaded(
        name=f"Load NVIDIA driver {version}, rebooting if another one is loaded",
        version=version,
        may_reboot=settings.reboot == "when-needed",
        timeout_s=settings.reboot_timeout_s,
        _serial=True,
    )


def prepared(context: Context) -> None:
    """What a host has before the driver's packages: their repository, and what they run beside."""
    if parts.nvswitches(context) == "nvlink5":
        files.present(
            name="Load InfiniBand modules at boot",
            contents={"/etc/modules-load.d/gpuboot-nvlink.conf": NVLINK5},
        )
        kernel.applied(name="Load InfiniBand modules", features=fabric.MODULES, sysctls={})
    add_repository(context, "cuda")
    files.present(
        name="Disable nouveau", contents={"/etc/modprobe.d/gpuboot-nouveau.conf": NOUVEAU}
    )


def packages_beside_others(context: Context) -> dict[str, str]:
    """The driver's packages where they may be installed together with those of other phases.

    With dnf they stand alone: a module stream and a version lock choose them before.
    """
    version = parts.driver_version(context)
    if not version or context.platform.package_manager == "dnf":
        return {}
    pinning = {driver_packages.pinning_package(version): ""}
    return {**pinning, **parts.driver(context), **companion_packages(context)}


def _install(context: Context, version: str) -> None:
    prepared(context)
    if parts.upgraded_as_node(context):
        return
    if context.platform.package_manager == "dnf":
        dnf.driver_pinned(
            name=f"Pin the NVIDIA driver to {version} (dnf module stream and version lock)",
            version=version,
            stream=driver_packages.module_stream(version, parts.flavour(context)),
        )
    else:
        packages.installed(
            name=f"Pin the NVIDIA driver to {version}",
            versions={driver_packages.pinning_package(version): ""},
            manager=context.platform.package_manager,
            available=tuple(parts.driver(context)),
        )
    packages.installed(
        name=f"Install NVIDIA driver {version}",
        versions={**parts.driver(context), **companion_packages(context)},
        manager=context.platform.package_manager,
    )


def companion_packages(context: Context) -> dict[str, str]:
    """Packages that the driver needs beside its own, of whatever version."""
    settings = context.settings.driver
    by_key = settings.secure_boot == "mok" and context.state.secure_boot.enforced
    names = (
        *(["mokutil"] if by_key else []),
        *kernels.headers(context.platform, context.state),
        "nvidia-persistenced",
        *fabric.packages(parts.nvswitches(context)),
    )
    return dict.fromkeys(names, "")


def services(context: Context) -> list[str]:
    """The units that keep the driver ready on this host."""
    services = ["nvidia-persistenced.service"]
    if parts.nvswitches(context):
        services.append("nvidia-fabricmanager.service")
    return services
