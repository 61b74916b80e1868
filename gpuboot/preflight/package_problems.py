"""Preflight of packages: versions that a repository lacks, where the host has read its index."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuboot.cluster import kubeadm
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock, parse
from gpuboot.hosts import dcgm_engine, driver_packages, gpu_models, platforms, repositories
from gpuboot.hosts.node_state import NodeState, upstream_version
from gpuboot.hosts.platforms import Platform

_MAX_VERSIONS = 3  # versions that a message offers instead
_TOOLKIT = "nvidia-container-toolkit"


@dataclass(frozen=True)
class AvailableVersion:
    """A version of a package, and the address of the repository whose index has it."""

    package: str
    version: str
    url: str


@dataclass(frozen=True)
class RequiredPackage:
    """A package that a host installs at an exact version.

    + pattern: of versions with their build
    """

    package: str
    pattern: str
    url: str


def required(node: Node, state: NodeState, settings: Settings, lock: Lock) -> list[RequiredPackage]:
    """What a host installs at an exact version and does not have yet.

    + state: as preflight read it
    """
    platform = platforms.find(state)
    if platform is None or state.arch not in platforms.ARCHITECTURES:
        return []  # another check tells of it
    packages = []
    for name, patterns in _packages(node, platform, state, settings, lock).items():
        minor = lock.kubernetes.minor
        repository = repositories.repository(name, platform, state.arch, minor, settings)
        url = repository.url.rstrip("/")
        packages += [
            RequiredPackage(package, pattern, url)
            for package, pattern in patterns.items()
            if not fnmatchcase(state.packages.get(package, ""), pattern)
        ]
    return packages


def _packages(
    node: Node, platform: Platform, state: NodeState, settings: Settings, lock: Lock
) -> dict[str, dict[str, str]]:
    """Repository -> package -> pattern of the version that a node needs."""
    packages = {"docker": {"containerd.io": f"{lock.containerd.version}-*"}}
    if node.role == "docker":
        packages["docker"]["docker-ce"] = platform.version_pattern("docker-ce", lock.docker.version)
    else:
        packages["kubernetes"] = kubeadm.packages(lock)
    if node.gpus:
        packages["toolkit"] = {_TOOLKIT: lock.toolkit.version}
    if (
        node.gpus
        and settings.dcgm == "host"
        and (driver := dcgm_engine.driver(state, settings, lock))
    ):
        with contextlib.suppress(ValueError):  # another check tells of a driver that is too old
            packages["cuda"] = dcgm_engine.packages(platform, lock.dcgm.version, driver)
    if node.gpus and settings.driver.enabled:
        version = lock.driver.version
        try:
            flavour = gpu_models.flavour(
                state.gpu_ids, settings.driver.modules, lock.driver, platform.oldest_driver
            )
        except gpu_models.FlavourError:
            return packages  # another check tells of it
        names = driver_packages.driver_packages(platform, version, flavour, fabric_manager=False)
        packages["cuda"] = packages.get("cuda", {}) | dict.fromkeys(names, f"{version}-*")
    return packages


def missing_versions(
    required: Mapping[str, Iterable[RequiredPackage]],
    available: Mapping[str, Sequence[AvailableVersion]],
) -> tuple[list[Problem], list[str]]:
    """Versions that repositories lack: problems, and lines of warning.

    + required: inventory name -> what the host installs
    + available: inventory name -> what its package manager knows; nothing of a repository that
      it has not read

    What is newer than all that an old index has may be there by now: that is a warning.
    """
    hosts_by_cause: dict[tuple[str, bool], list[str]] = {}
    for host, packages in required.items():
        for item in packages:
            versions = _known_versions(item, available.get(host, ()))
            if not versions or any(fnmatchcase(version, item.pattern) for version in versions):
                continue
            newest = sorted({upstream_version(text) for text in versions}, key=_order)[::-1]
            requested = upstream_version(item.pattern)
            cause = (
                f"its repository has no {item.package} {requested} (it has "
                f"{', '.join(newest[:_MAX_VERSIONS])})"
            )
            newer = _order(requested) > _order(newest[0])
            hosts_by_cause.setdefault((cause, newer), []).append(host)
    problems, warnings = [], []
    for (cause, newer), hosts in hosts_by_cause.items():
        remedy = "correct the version in the settings (driver.version, versions)"
        if newer:
            names = ", ".join(hosts)
            warnings.append(
                f"{names}: by the package index there {cause}; the run reads the index again, "
                f"and stops if that is still so; remedy: {remedy}"
            )
        elif len(hosts) == 1:
            problems.append(Problem(hosts[0], cause, remedy))
        else:
            problems.append(Problem("", f"from {', '.join(hosts)}: {cause}", remedy))
    return problems, warnings


def _known_versions(item: RequiredPackage, available: Iterable[AvailableVersion]) -> list[str]:
    return [
        candidate.version
        for candidate in available
        if candidate.package == item.package and candidate.url.rstrip("/") == item.url
    ]


def _order(version: str) -> tuple[int, ...]:
    try:
        return parse(version)
    except ValueError:
        return ()
