"""Driver, toolkit, containerd and kubelet of a node: what they are to be, and what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pyinfra.context import host

from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.parts.containerd import operations as containerd
from deploys.parts.containerd.operations import Configuration
from deploys.parts.driver.fact import DriverState
from deploys.parts.driver.operations import other_module
from deploys.parts.kubeadm import kubelet_upgrade
from deploys.parts.kubeadm.kubelet_upgrade import KubeletPart
from deploys.parts.packages import dnf_operations as dnf
from deploys.parts.packages import operations as package_operations
from gpuboot.cluster import node_upgrade as rules
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.hosts.platforms import PackageManager


@dataclass(frozen=True)
class DriverPart:
    """The driver that a host is to run.

    + packages: those that are of its version -> pattern; companions: others that it needs
    + pin: apt's package that pins it; stream: of dnf's module; "" for none
    + services: units that keep it ready
    + may_reboot, reboot_s: whether a reboot is allowed, and how long it may take (None: by memory)
    """

    version: str
    packages: Mapping[str, str]
    companions: Mapping[str, str] = field(default_factory=dict)
    pin: str = ""
    stream: str = ""
    services: Sequence[str] = ()
    may_reboot: bool = True
    reboot_s: int | None = None


@dataclass(frozen=True)
class Parts:
    """What a host is to run below Kubernetes, and its kubelet.

    + driver: None where that is not gpuboot's; kubelet: None where it is none of a cluster
    """

    containerd: Mapping[str, str]
    configuration: Configuration
    toolkit: Mapping[str, str] = field(default_factory=dict)
    driver: DriverPart | None = None
    kubelet: KubeletPart | None = None


def difference(
    parts: Parts,
    manager: PackageManager,
    loaded: DriverState,
    state: KubeadmState,
    node: str,
    leader: str,
) -> rules.Difference:
    """What the current host lacks. + loaded: the driver as it is; state: how far kubeadm got

    + node: its name in Kubernetes; leader: inventory name of the leader
    """
    part, installed, kubelet = parts.driver, dict(state.packages), parts.kubelet
    missing_packages = kubelet_upgrade.missing(kubelet, state) if kubelet else {}
    due = bool(kubelet and (missing_packages or kubelet_upgrade.is_unfinished(kubelet, state)))
    companions = part.companions if part else {}
    driver_packages = part.packages if part else {}
    for packages in ({**driver_packages, **companions}, parts.toolkit, parts.containerd):
        if packages:
            # as `packages.installed` asks, so that it is asked once
            _, fact, arguments = package_operations.question(host, packages, manager)
            installed |= read(fact, **arguments).versions
    return rules.Difference(
        driver=rules.mismatched(driver_packages, installed),
        toolkit=rules.mismatched(parts.toolkit, installed),
        containerd=rules.mismatched(parts.containerd, installed),
        version=part.version if part else "",
        loaded=(other_module(loaded, part.version) or loaded.loaded) if part else "",
        installed=installed,
        kubelet=missing_packages,
        kubelet_due=due,
        minor=bool(due and kubelet and kubelet_upgrade.is_minor(kubelet, node, leader, state)),
    )


def missing(parts: Parts, difference: rules.Difference) -> dict[str, str]:
    """Packages that `installed` installs, with their versions or patterns."""
    part, driver = parts.driver, dict[str, str]()
    if part and difference.driver:
        pin = {} if part.stream else {part.pin: ""}
        driver = pin | rules.mismatched({**part.packages, **part.companions}, difference.installed)
    return {**driver, **difference.toolkit, **difference.containerd, **difference.kubelet}


def installed(parts: Parts, difference: rules.Difference, manager: PackageManager) -> Commands:
    """Packages that the current host lacks, and containerd with its configuration."""
    part = parts.driver
    if part and difference.driver:
        if part.stream:
            yield from dnf.driver_pinned._inner(part.version, part.stream)
        else:
            pin, names = {part.pin: ""}, list(part.packages)
            yield from package_operations.installed._inner(pin, manager, available=names)
        driver_packages = {**part.packages, **part.companions}
        yield from package_operations.installed._inner(driver_packages, manager)
    for packages in (parts.toolkit, parts.containerd):
        if packages:
            yield from package_operations.installed._inner(packages, manager, hold=True)
    restarts = False
    for command in containerd.configured._inner(**asdict(parts.configuration)):
        restarts = True
        yield command
    if difference.containerd and not restarts:
        yield containerd.restarted()
