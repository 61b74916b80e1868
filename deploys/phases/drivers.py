"""The NVIDIA driver on GPU nodes: installed as asked, loaded, and showing every GPU."""

from __future__ import annotations

from collections.abc import Iterable

from deploys.lib.operation import phase
from deploys.operations import dnf, driver, files, kernel, packages, units
from deploys.phases.repositories import add_repository
from deploys.run.context import Context, current
from gpuboot.hosts import driver_packages, fabric, gpu_models, kernels
from gpuboot.hosts.driver_packages import Flavour

NOUVEAU = """\
# Written by gpuboot: nouveau and NVIDIA's driver cannot share a GPU
blacklist nouveau
options nouveau modeset=0
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
    version = ""
    if settings.enabled:
        version = context.lock.driver.version
        if _fabric(context) == "nvlink5":
            files.present(
                name="Load InfiniBand modules at boot",
                contents={"/etc/modules-load.d/gpuboot-nvlink.conf": NVLINK5},
            )
            kernel.applied(name="Load InfiniBand modules", features=fabric.MODULES, sysctls={})
        _install(context, version)
        driver.loaded(
            name=f"Load NVIDIA driver {version}, rebooting if another one is loaded",
            version=version,
            may_reboot=settings.reboot == "when-needed",
            timeout_s=settings.reboot_timeout_s,
            node=context.node.name,
            leader="" if context.node.role == "docker" else context.leader.host,
            _serial=True,
        )
        if units_to_start := services(context):
            units.running(name="Start the driver's services", units=units_to_start)
    driver.checked(
        name=f"Check that nvidia-smi lists every GPU, under driver {version or '(any)'}",
        version=version,
        gpus=context.node.gpus,
    )


def _install(context: Context, version: str) -> None:
    add_repository(context, "cuda")
    files.present(
        name="Disable nouveau", contents={"/etc/modprobe.d/gpuboot-nouveau.conf": NOUVEAU}
    )
    modules, fabric_manager = flavour(context), bool(_fabric(context))
    names = driver_packages.driver_packages(context.platform, version, modules, fabric_manager)
    if context.platform.package_manager == "dnf":
        dnf.driver_pinned(
            name=f"Pin the NVIDIA driver to {version} (dnf module stream and version lock)",
            version=version,
            stream=driver_packages.module_stream(version, modules),
        )
    else:
        packages.installed(
            name=f"Pin the NVIDIA driver to {version}",
            versions={driver_packages.pinning_package(version): ""},
            manager=context.platform.package_manager,
            available=names,
        )
    packages.installed(
        name=f"Install NVIDIA driver {version}",
        versions=to_install(context, version, names),
        manager=context.platform.package_manager,
    )


def to_install(context: Context, version: str, names: Iterable[str]) -> dict[str, str]:
    """Packages to install -> their version patterns.

    + names: of the driver itself
    """
    persistence = ["nvidia-persistenced"] if context.settings.driver.persistence else []
    return {
        **dict.fromkeys(kernels.headers(context.platform, context.state), ""),
        **dict.fromkeys(names, f"{version}-*"),
        **dict.fromkeys(persistence, ""),
        **dict.fromkeys(fabric.packages(_fabric(context)), ""),
    }


def flavour(context: Context) -> Flavour:
    """Open or proprietary kernel modules, by the GPUs that preflight saw on this host."""
    return gpu_models.flavour(
        [gpu.device for gpu in context.state.gpus],
        context.settings.driver.modules,
        context.lock.driver,
    )


def _fabric(context: Context) -> fabric.Fabric:
    return fabric.managed(context.state, context.settings.driver.fabric_manager)


def services(context: Context) -> list[str]:
    """The units that keep the driver ready on this host."""
    services = []
    if context.settings.driver.persistence:
        services.append("nvidia-persistenced.service")
    if _fabric(context):
        services.append("nvidia-fabricmanager.service")
    return services
