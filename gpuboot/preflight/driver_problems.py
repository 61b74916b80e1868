"""Preflight of GPU nodes: what keeps NVIDIA's driver from being installed or loaded."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import (
    dkms,
    driver_packages,
    fabric,
    gpu_models,
    kernels,
    module_loading,
    platforms,
)
from gpuboot.hosts.module_loading import conflicting
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.secure_boot import SECURE_BOOT, refusal, standing, standing_of_next

_JOINED = "/etc/kubernetes/kubelet.conf"


def problems(
    node: Node, state: NodeState, settings: Settings, lock: Lock
) -> Iterator[tuple[str, str]]:
    """Cause and remedy of each problem."""
    if not node.gpus:
        return
    if settings.driver.enabled:
        yield from _to_install(state, settings, lock)
        yield from _to_load(node, state, settings, lock)
    elif not state.driver_loaded:
        yield (
            "driver.enabled is False, but no NVIDIA driver is loaded",
            "load the driver (modprobe nvidia), or let gpuboot install it",
        )


def _to_install(state: NodeState, settings: Settings, lock: Lock) -> Iterator[tuple[str, str]]:
    driver, platform = settings.driver, platforms.find(state)
    oldest = platform.oldest_driver if platform else 0
    try:
        gpu_models.flavour(state.gpu_ids, driver.modules, lock.driver, oldest)
    except gpu_models.FlavourError as error:
        yield error.cause, error.remedy
    if state.remnants:
        yield (
            f"a driver from NVIDIA's .run installer is there ({', '.join(state.remnants)})",
            "remove it with `nvidia-uninstall --silent`, then reboot",
        )
    if state.headers == "missing" and platform:
        yield kernels.problem(platform, state)
    yield from _not_built(state, settings, lock)
    yield from _full_boot(state, settings, lock)
    yield from fabric.problems(state, driver.fabric_manager)
    if platform and fabric.managed(state, driver.fabric_manager):
        names = driver_packages.driver_packages(platform, lock.driver.version, "open", True)
        yield from fabric.earlier_problems(state, names[-1])


def _to_load(
    node: Node, state: NodeState, settings: Settings, lock: Lock
) -> Iterator[tuple[str, str]]:
    version, driver = lock.driver.version, settings.driver
    platform = platforms.find(state)
    dnf = platform is not None and platform.package_manager == "dnf"
    rebuild = "dracut -f --regenerate-all" if dnf else "update-initramfs -u -k all"
    yield from module_loading.problems(state.module_loading, rebuild)
    has_next_module = _another_module_comes(state, settings, lock)
    in_use = node.role != "docker" and _JOINED in state.kubeconfigs
    by_itself = (
        driver.secure_boot == "mok" and not in_use and state.secure_boot.enforcer == SECURE_BOOT
    )
    finding = refusal(state.secure_boot, next_module=has_next_module, in_use=in_use)
    if finding and not by_itself and (has_next_module or not state.driver_loaded):
        yield finding
    conflict = conflicting(state.modules)
    needs_reboot = state.driver_loaded and state.driver_loaded != version
    if driver.reboot == "never" and (needs_reboot or conflict):
        loaded = state.driver_loaded or conflict
        yield (
            f"driver {loaded} is loaded, {version} is requested, and driver.reboot is never",
            'set driver.reboot = "when-needed", or unload the driver by hand',
        )


def _not_built(state: NodeState, settings: Settings, lock: Lock) -> Iterator[tuple[str, str]]:
    """The locked driver is installed, no run will build it any more, and there is no module."""
    version = lock.driver.version
    module = dkms.not_built(state.dkms.status, version, state.kernel)
    # a run configures what dpkg has not, and installs missing headers; with both DKMS builds
    if not module or state.dkms.unfinished or state.headers != "installed":
        return
    if state.driver_module != version and not _packages_come(state, settings, lock):
        yield dkms.problem(module, state.kernel, state.dkms)


def _full_boot(state: NodeState, settings: Settings, lock: Lock) -> Iterator[tuple[str, str]]:
    """/boot has no room for an initramfs beside the one that it replaces."""
    boot, needed_kib = state.folders.folders.get("/boot"), state.initrd_kib
    if boot and boot.free_kib < needed_kib and _another_module_comes(state, settings, lock):
        yield (
            f"/boot has {boot.free_kib // 1024} MiB free (file system {boot.mount}), and its "
            f"largest initramfs has {needed_kib // 1024}: the driver's packages write it anew "
            "beside the old one, and would stay half installed",
            "remove kernels that nobody boots (`apt-get autoremove --purge`, on RHEL "
            "`dnf remove --oldinstallonly`), or make /boot larger",
        )


def _another_module_comes(state: NodeState, settings: Settings, lock: Lock) -> bool:
    """Whether the run has DKMS build another module than the one that is on disk."""
    replaces_module = state.driver_module and state.driver_module != lock.driver.version
    return bool(replaces_module) or _packages_come(state, settings, lock)


def _packages_come(state: NodeState, settings: Settings, lock: Lock) -> bool:
    """Whether the run installs packages of the driver."""
    platform, version = platforms.find(state), lock.driver.version
    if platform is None:
        return True
    try:
        flavour = gpu_models.flavour(state.gpu_ids, settings.driver.modules, lock.driver)
    except gpu_models.FlavourError:
        return True  # another check tells of it
    names = driver_packages.driver_packages(platform, version, flavour, fabric_manager=False)
    return any(not fnmatchcase(state.packages.get(name, ""), f"{version}-*") for name in names)


def warnings(nodes: Iterable[Node], states: Mapping[str, NodeState]) -> list[str]:
    """A line for each machine whose driver loads today and is refused with its next kernel."""
    lines = []
    for node in nodes:
        state = states.get(node.host)
        if state is None or not (node.gpus and state.driver_loaded and state.secure_boot.key):
            continue
        boot = state.secure_boot
        if standing(boot) == "signed" and standing_of_next(boot) in ("pending", "unknown"):
            lines.append(
                f"[{node.host}] {boot.enforcer} is on, and the key by which DKMS signs the next "
                f"kernel's NVIDIA module ({boot.key}) is not enrolled: that kernel would refuse "
                f"it; remedy: mokutil --import {boot.key}, reboot, confirm on the console"
            )
    return lines


def vendor_warnings(
    nodes: Iterable[Node], states: Mapping[str, NodeState], settings: Settings, lock: Lock
) -> list[str]:
    """A line for each machine with a driver that its vendor maintains, and the run replaces.

    DGX OS: NVIDIA/deepops#1054 installs neither driver nor toolkit where /etc/dgx-release is.
    """
    lines = []
    for node in nodes:
        state = states.get(node.host)
        if state is None or not (node.gpus and state.vendor_stacks):
            continue
        stacks = " and ".join(state.vendor_stacks)
        if settings.driver.enabled and _packages_come(state, settings, lock):
            lines.append(
                f"[{node.host}] {stacks} brought its own driver, which the run replaces by "
                f"{lock.driver.version} of NVIDIA's CUDA repository: the vendor's updates may "
                "bring theirs back; remedy: set driver.enabled = False to stay with the vendor's, "
                "or take its packages and its apt sources and preferences out first"
            )
        if (unit := state.units.get("nvidia-mig-manager")) and unit.enabled == "enabled":
            lines.append(
                f"[{node.host}] {stacks} has its own nvidia-mig-manager.service, which divides "
                "GPUs at each boot beside gpuboot and the GPU Operator; remedy: `systemctl disable "
                "--now nvidia-mig-manager` there, where `sharing` is to decide"
            )
    return lines
