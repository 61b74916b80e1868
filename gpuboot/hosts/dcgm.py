"""DCGM's host engine as a service of GPU nodes: its packages, its unit, and where it listens.

Packages and unit: cmake/packaging.cmake and config-files/systemd in NVIDIA/DCGM v4.6.0, and the
CUDA repository's own recommendations (`-proprietary` has what profiling takes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock, parse
from gpuboot.hosts.driver_packages import branch
from gpuboot.hosts.node_state import NodeState, upstream_version
from gpuboot.hosts.platforms import Platform
from gpuboot.templates import render

UNIT = "nvidia-dcgm.service"
PORT = 5555
DROP_IN = f"/etc/systemd/system/{UNIT}.d/gpuboot.conf"
_PROCESS = "nv-hostengine"
_CORE = "datacenter-gpu-manager-4-core"
_OLD = "datacenter-gpu-manager"  # DCGM 3; DCGM 4's packages conflict with it
# lowest driver branch -> the CUDA major that its libcuda has: CUDA release notes, "CUDA Driver
# Versions" (450.80.02, 525.60.13, 580.65.06)
_CUDA = {580: 13, 525: 12, 450: 11}


def cuda_major(driver: str) -> int:
    """The CUDA major version of a driver's libraries, whose diagnostics DCGM installs.

    Raises ValueError for one that is too old for DCGM 4, or no version.
    """
    for lowest, major in _CUDA.items():
        if branch(driver) >= lowest:
            return major
    raise ValueError(f"DCGM 4 has no packages for driver {driver}")


def packages(platform: Platform, version: str, driver: str) -> dict[str, str]:
    """The engine's packages and the pattern of their versions.

    + version: of DCGM; driver: the one that is loaded, or is to be
    """
    cuda = f"cuda{cuda_major(driver)}"
    names = [
        _CORE,
        f"{_OLD}-4-{cuda}",
        f"{_OLD}-4-proprietary",
        f"{_OLD}-4-proprietary-{cuda}",
    ]
    return {name: platform.version_pattern(name, version) for name in names}


def is_older(installed: Mapping[str, str], version: str) -> bool:
    """Whether an earlier engine is installed. + installed: package -> version"""
    found = upstream_version(installed.get(_CORE, ""))
    return bool(found) and parse(found) < parse(version)


def files() -> dict[str, str]:
    """Path -> text of what the engine's unit gets beside NVIDIA's own."""
    return {DROP_IN: render("dcgm/nvidia-dcgm.conf.j2", process=_PROCESS, port=PORT)}


def driver(state: NodeState, settings: Settings, lock: Lock) -> str:
    """The version of the driver that a host runs, or will; "" where that is not known."""
    return lock.driver.version if settings.driver.enabled else state.driver_loaded


def problems(
    node: Node, state: NodeState, settings: Settings, lock: Lock
) -> Iterator[tuple[str, str]]:
    """Cause and remedy of what keeps a host engine from being installed or started."""
    if not node.gpus or settings.dcgm != "host":
        return
    version = driver(state, settings, lock)
    if version and branch(version) < min(_CUDA):
        yield (
            f"DCGM 4 has no packages for driver {version}",
            f'use driver R{min(_CUDA)} or newer, or dcgm = "embedded"',
        )
    if _OLD in state.packages:
        yield (
            f"{_OLD} {state.packages[_OLD]} is installed, which DCGM 4 conflicts with",
            f"remove it: `apt-get remove {_OLD}` or `dnf remove {_OLD}`",
        )
    owner = state.ports.get(PORT)
    if owner is not None and owner not in (_PROCESS, "?"):
        yield (
            f"TCP port {PORT} is in use by {owner}; DCGM's host engine needs it",
            f"stop what listens there: ss -ltnp 'sport = :{PORT}'",
        )
