"""Preflight of packages: versions that a repository does not have, where apt has read its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock, parse
from gpuboot.hosts import gpu_models, platforms, repositories
from gpuboot.hosts.node_state import NodeState, upstream_version
from gpuboot.kubernetes import kubeadm

_SHOWN = 3  # versions that a message offers instead
_TOOLKIT = "nvidia-container-toolkit"


@dataclass(frozen=True)
class Offer:
    """A version of a package, and the address of the repository whose index has it."""

    package: str
    version: str
    url: str


@dataclass(frozen=True)
class Wanted:
    """A package that a host installs at an exact version. + pattern: of Debian versions"""

    package: str
    pattern: str
    url: str


def wanted(node: Node, state: NodeState, settings: Settings, lock: Lock) -> list[Wanted]:
    """What a host installs at an exact version and does not have yet.

    + state: as preflight found it
    """
    platform = platforms.find(state)
    if platform is None or state.arch not in platforms.ARCHITECTURES:
        return []  # another check tells of it
    found = []
    for name, packages in _packages(node, state, settings, lock).items():
        minor = lock.kubernetes.minor
        repository = repositories.repository(name, platform, state.arch, minor, settings)
        url = repository.url.rstrip("/")
        found += [
            Wanted(package, pattern, url)
            for package, pattern in packages.items()
            if not fnmatchcase(state.packages.get(package, ""), pattern)
        ]
    return found


def _packages(
    node: Node, state: NodeState, settings: Settings, lock: Lock
) -> dict[str, dict[str, str]]:
    """Repository -> package -> pattern."""
    found = {"docker": {"containerd.io": f"{lock.containerd.version}-*"}}
    if node.role == "docker":
        found["docker"]["docker-ce"] = f"5:{lock.docker.version}-*"
    else:
        found["kubernetes"] = kubeadm.packages(lock)
    if node.gpus:
        found["toolkit"] = {_TOOLKIT: lock.toolkit.version}
    if node.gpus and settings.driver.enabled:
        version = lock.driver.version
        try:
            devices = [gpu.device for gpu in state.gpus]
            flavour = gpu_models.flavour(devices, settings.driver.modules, lock.driver)
        except gpu_models.FlavourError:
            return found  # another check tells of it
        names = platforms.driver_packages(version, flavour, fabric_manager=False)
        found["cuda"] = dict.fromkeys(names, f"{version}-*")
    return found


def judge(
    wanted: Mapping[str, Iterable[Wanted]], offers: Mapping[str, Sequence[Offer]]
) -> tuple[list[Problem], list[str]]:
    """Versions that repositories lack: problems, and lines of warning.

    + wanted: inventory name -> what the host installs
    + offers: inventory name -> what its apt knows; a repository that it has not read says nothing

    What is newer than all that an old index has may be there by now: that is a warning.
    """
    lacking: dict[tuple[str, bool], list[str]] = {}
    for host, packages in wanted.items():
        for item in packages:
            known = _known(item, offers.get(host, ()))
            if known and not any(fnmatchcase(version, item.pattern) for version in known):
                newest = sorted({upstream_version(text) for text in known}, key=_order)[::-1]
                asked = upstream_version(item.pattern)
                cause = (
                    f"its repository has no {item.package} {asked} (it has "
                    f"{', '.join(newest[:_SHOWN])})"
                )
                lacking.setdefault((cause, _order(asked) > _order(newest[0])), []).append(host)
    problems, warnings = [], []
    for (cause, newer), hosts in lacking.items():
        remedy = "correct the version in the settings (driver.version, versions)"
        if newer:
            names = ", ".join(hosts)
            warnings.append(
                f"{names}: by apt's index {cause}; the run reads the index anew, and stops there "
                f"if that is still so; remedy: {remedy}"
            )
        elif len(hosts) == 1:
            problems.append(Problem(hosts[0], cause, remedy))
        else:
            problems.append(Problem("", f"from {', '.join(hosts)}: {cause}", remedy))
    return problems, warnings


def _known(item: Wanted, offers: Iterable[Offer]) -> list[str]:
    return [
        offer.version
        for offer in offers
        if offer.package == item.package and offer.url.rstrip("/") == item.url
    ]


def _order(version: str) -> tuple[int, ...]:
    try:
        return parse(version)
    except ValueError:
        return ()
