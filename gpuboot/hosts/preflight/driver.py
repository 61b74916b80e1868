"""Preflight of GPU nodes: what keeps NVIDIA's driver from being installed or loaded."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import fabric, gpu_models, kernels, platforms
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.secure_boot import refusal


def problems(
    node: Node, state: NodeState, settings: Settings, lock: Lock
) -> Iterator[tuple[str, str]]:
    """Cause and remedy of each problem."""
    if not node.gpus:
        return
    if settings.driver.enabled:
        yield from _to_install(state, settings, lock)
        yield from _to_load(state, settings, lock.driver.version)
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
        manager = platform.package_manager
        yield (
            f"no kernel headers for the running kernel {state.kernel}, and {manager} has none",
            f"install {kernels.running_headers(platform, state)}, or boot a kernel whose headers "
            f"{manager} has",
        )
    yield from fabric.problems(state, driver.fabric_manager)


def _to_load(state: NodeState, settings: Settings, version: str) -> Iterator[tuple[str, str]]:
    by_itself = settings.driver.secure_boot == "mok"
    if not (state.driver_loaded or by_itself) and (refused := refusal(state.secure_boot)):
        yield refused
    needs_reboot = state.driver_loaded and state.driver_loaded != version
    if settings.driver.reboot == "never" and (needs_reboot or "nouveau" in state.modules):
        loaded = state.driver_loaded or "nouveau"
        yield (
            f"driver {loaded} is loaded, {version} is requested, and driver.reboot is never",
            'set driver.reboot = "when-needed", or unload the driver by hand',
        )
