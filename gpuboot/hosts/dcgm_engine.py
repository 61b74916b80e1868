"""DCGM's host engine as a service of GPU nodes: its packages, its unit, and what asks it.

Packages and unit: cmake/packaging.cmake and config-files/systemd in NVIDIA/DCGM v4.6.0, and the
CUDA repository's own recommendations (`-proprietary` has what profiling takes).
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from datetime import date

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.support import Source
from gpuboot.config.versions import Lock, parse
from gpuboot.hosts import health_watches
from gpuboot.hosts.driver_packages import branch
from gpuboot.hosts.node_state import NodeState, upstream_version
from gpuboot.hosts.platforms import Platform
from gpuboot.templates import render

UNIT = "nvidia-dcgm.service"
PORT = 5555
DROP_IN = f"/etc/systemd/system/{UNIT}.d/gpuboot.conf"
# the program that asks the engine, its timers, and what it leaves
PROGRAM = "/usr/local/sbin/gpuboot-dcgm-check"
RESULTS = "/var/lib/gpuboot/dcgm"
TIMERS = ("gpuboot-dcgm-health.timer", "gpuboot-dcgm-diag.timer")
_UNITS = "/etc/systemd/system"
_CONFIG = "/etc/gpuboot/dcgm.conf"
CHECKS = ("health", "diag")
_CHECK_FILES = (
    _CONFIG,
    *(f"{_UNITS}/gpuboot-dcgm-{check}.service" for check in CHECKS),
    *(f"{_UNITS}/{timer}" for timer in TIMERS),
)
# what is older calls for a look: they are asked every five minutes, and every day
HEALTH_STALE_MIN = 30
DIAG_STALE_H = 30
# a new engine has nothing to tell in the first minute: `dcgmi health --help`
_SETTLE_S = 65
_PROCESS = "nv-hostengine"
_CORE = "datacenter-gpu-manager-4-core"
_OLD = "datacenter-gpu-manager"  # DCGM 3; DCGM 4's packages conflict with it
SOURCE = Source(date(2026, 11, 26), 'NVIDIA\'s CUDA Compatibility, "Minor Version Compatibility"')
# lowest driver branch -> the CUDA major that its libcuda has
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
    installed_version = upstream_version(installed.get(_CORE, ""))
    return bool(installed_version) and parse(installed_version) < parse(version)


def files() -> dict[str, str]:
    """Path -> text of what the engine's unit gets beside NVIDIA's own."""
    return {DROP_IN: render("dcgm/nvidia-dcgm.conf.j2", process=_PROCESS, port=PORT)}


def traces(metrics: str) -> tuple[str, ...]:
    """All files of ours on a host. + metrics: folder that node-exporter reads"""
    result_files = [f"{RESULTS}/{check}.{kind}" for check in CHECKS for kind in ("json", "tsv")]
    metric_files = [f"{metrics}/gpuboot_dcgm_{check}.prom" for check in CHECKS]
    return (DROP_IN, PROGRAM, *_CHECK_FILES, *result_files, *metric_files)


def program() -> str:
    """The program that asks the engine for health, or for a diagnosis: a shell script."""
    return render("dcgm/dcgm-check.sh", codes=json.dumps(health_watches.texts()))


def check_files(node: str, metrics: str) -> dict[str, str]:
    """Path -> text of the program's settings and units.

    + node: its Kubernetes name; metrics: folder that node-exporter reads
    """
    variables = {"node": node, "metrics": metrics, "results": RESULTS, "settle_s": str(_SETTLE_S)}
    config = [f"{name}={shlex.quote(value)}\n" for name, value in variables.items()]
    texts = [
        "".join(["# Written by gpuboot\n", *config]),
        *(render("dcgm/dcgm-check.service.j2", program=PROGRAM, check=check) for check in CHECKS),
        *(render("dcgm/dcgm-check.timer.j2", check=check) for check in CHECKS),
    ]
    return dict(zip(_CHECK_FILES, texts, strict=True))


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
            f"DCGM 4 has no packages for driver {version} ({SOURCE.age()})",
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
