"""The state of a machine: the typed answer of the compound fact (`deploys/parts/node/fact.sh`)."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.hosts import (
    boot,
    dkms,
    environment,
    folders,
    loaded_driver,
    module_loading,
    packet_filter,
    pci,
    remains,
    repository_keys,
    secure_boot,
    software,
)
from gpuboot.hosts.boot import BootState
from gpuboot.hosts.dkms import DkmsState
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.hosts.environment import ProxyVariable
from gpuboot.hosts.fact_output import FactOutputError, Fields
from gpuboot.hosts.folders import Folders
from gpuboot.hosts.module_loading import ModuleLoading
from gpuboot.hosts.packet_rules import PacketFilter
from gpuboot.hosts.pci import GPU_CLASSES, SWITCH_CLASS, PciDevice
from gpuboot.hosts.remains import Remains
from gpuboot.hosts.repository_keys import RepositoryKey
from gpuboot.hosts.secure_boot import SecureBootState
from gpuboot.hosts.software import Software

# a driver metapackage of NVIDIA's repository, with a branch suffix up to R580
_METAPACKAGE = re.compile(r"(nvidia-open|cuda-drivers)(-\d+)?")


@dataclass(frozen=True)
class Unit:
    """A systemd unit: `active` is its ActiveState, `enabled` its UnitFileState ("" for none)."""

    active: str
    enabled: str


@dataclass(frozen=True)
class NodeState:
    """A machine at one moment. Sizes in MiB, times in seconds since 1970.

    + default_address: source address of the default route, else the first address
    + container: what container the machine is ("" for a real or virtual machine)
    + headers: kernel headers of the running kernel: installed, available, missing, or unknown
      while the package manager has read no index
    + headers_package: apt's package of them where they are not there; "" elsewhere
    + dkms_package: DKMS on systems of rpm packages, where it is in EPEL: the same four
    + kernel_headers: the headers that go with each installed kernel metapackage -> the same four:
      linux-headers-generic where linux-image-generic is installed
    + fabric_managers: installed packages of the fabric manager, with what they conflict with
    + vendor_stacks: collections of drivers and tools that it came with: DGX OS, Lambda Stack
    + kernel_features: those that are built in, loaded or there as a module
    + driver_loaded: version of the NVIDIA driver in the kernel; "" for none
    + driver_open: the loaded driver is made of the open kernel modules
    + driver_module: version of the module on disk, as modinfo tells; "" where it cannot
    + mig_instances: GPU instances that its GPUs are divided into
    + mig_profiles: those that its driver has, where that was asked (`gpuboot.hosts.driver_mig`)
    + ignored_gpus: PCI addresses of GPUs that are not the cluster's, each with the reason
      (`gpuboot.hosts.gpu_choice`)
    + nvlink_bridges: PCI addresses of the ConnectX devices that lead to NVSwitches (NVLink 5)
    + packages: versions of installed packages that matter here, by name
    + package_lock_holders: processes that hold the package manager's locks
    + dnf_proxy: /etc/dnf/dnf.conf names an HTTP proxy
    + repository_keys: of gpuboot's own package repositories
    + selinux_enforcing: SELinux refuses what its policy does not allow
    + ports: listening TCP ports, with the name of the listening process ("?": not known)
    + interfaces: network devices, each with one of its addresses and that one's network (CIDR)
    + routes: networks (CIDR) with the device they lead to
    + other_networks: networks that bridges of other programs have when they run, with the program
    + run_lock: record of the run that last took the lock there (`gpuboot.hosts.run_lock`); ""
      for none since it booted
    + run_lock_age: seconds for which that run has held it; None when it has ended
    + half_made: steps of kubeadm, init or join, that gpuboot began and did not see end
    + led_at: when a run that this machine led has written kubeadm's configuration there; 0: never
    + load_balancer: whose haproxy's configuration is: ours, foreign (a site's own), "" for none
    + keepalived: whose keepalived's configuration is: ours, foreign (a site's own), "" for none
    + virtual_address: the one that ours has, whether this machine holds it or not; "" for none
    + cluster_ca: SHA-256 of the certificate authority of the cluster it belongs to; "" for none
    """

    uid: int
    hostname: str
    machine_id: str
    boot_id: str
    arch: str
    kernel: str
    os_id: str
    os_version: str
    os_codename: str
    os_name: str
    headers: str
    cgroup: int
    memory_mib: int
    cpus: int
    clock: float
    default_address: str
    secure_boot: SecureBootState = field(default_factory=SecureBootState)
    repository_keys: tuple[RepositoryKey, ...] = ()
    module_loading: ModuleLoading = field(default_factory=ModuleLoading)
    proxy_variables: tuple[ProxyVariable, ...] = ()
    software: Software = field(default_factory=Software)
    folders: Folders = field(default_factory=Folders)
    packet_filter: PacketFilter = field(default_factory=PacketFilter)
    remains: Remains = field(default_factory=Remains)
    boot: BootState = field(default_factory=BootState)
    ntp_synchronised: bool = False
    headers_package: str = ""
    cgroup_controllers: str = ""
    initrd_kib: int = 0
    statoverrides: tuple[str, ...] = ()
    vendor_stacks: tuple[str, ...] = ()
    fabric_managers: Mapping[str, str] = field(default_factory=dict)
    driver_loaded: str = ""
    driver_open: bool = False
    driver_module: str = ""
    dkms_package: str = ""
    dnf_proxy: bool = False
    selinux_enforcing: bool = False
    mig_instances: int = 0
    mig_profiles: DriverProfiles = field(default_factory=dict)
    cloud_init: str = ""
    container: str = ""
    cluster_ca: str = ""
    half_made: tuple[str, ...] = ()
    led_at: int = 0
    load_balancer: str = ""
    keepalived: str = ""
    virtual_address: str = ""
    run_lock: str = ""
    run_lock_age: int | None = None
    clock_skew_s: float = 0.0
    kernel_features: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    pci: tuple[PciDevice, ...] = ()
    ignored_gpus: Mapping[str, str] = field(default_factory=dict)
    nvlink_bridges: tuple[str, ...] = ()
    kernel_headers: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    remnants: tuple[str, ...] = ()
    dkms: DkmsState = field(default_factory=DkmsState)
    package_lock_holders: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    interfaces: tuple[tuple[str, str], ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    other_networks: tuple[tuple[str, str], ...] = ()
    ports: Mapping[int, str] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    kubeconfigs: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        """The NVIDIA GPUs on the PCI bus that are for pods."""
        return tuple(item for item in self.all_gpus if item.slot not in self.ignored_gpus)

    @property
    def all_gpus(self) -> tuple[PciDevice, ...]:
        """Every NVIDIA GPU on the PCI bus, whatever it is for."""
        return tuple(item for item in self.pci if item.kind.startswith(GPU_CLASSES))

    @property
    def gpu_ids(self) -> tuple[int, ...]:
        """PCI device ids of its GPUs."""
        return tuple(item.device for item in self.gpus)

    @property
    def nvswitches(self) -> tuple[PciDevice, ...]:
        """The NVSwitches on the PCI bus; NVLink 5 has none there (`gpuboot.hosts.fabric`)."""
        return tuple(item for item in self.pci if item.kind.startswith(SWITCH_CLASS))

    @property
    def driver_package(self) -> str:
        """Version of the installed driver by its metapackage, without revision; "" for none."""
        versions = [
            version for name, version in self.packages.items() if _METAPACKAGE.fullmatch(name)
        ]
        return upstream_version(max(versions)) if versions else ""

    @property
    def driver_installed(self) -> str:
        """Version of the driver that the next load gives: the module's, else the package's."""
        return self.driver_module or self.driver_package

    def is_active(self, unit: str) -> bool:
        """Whether a systemd unit runs."""
        state = self.units.get(unit)
        return state is not None and state.active == "active"


def upstream_version(version: str) -> str:
    """A Debian version without epoch and revision: `1:595.91.07-1ubuntu1` gives 595.91.07."""
    return version.rpartition(":")[2].partition("-")[0]


def parse(lines: Iterable[str]) -> NodeState:
    """The state that the fact's script printed. Raises `FactOutputError` when it did not finish."""
    values = Fields(lines, last="clock")
    try:
        return _state(values)
    except (ValueError, IndexError) as error:
        raise FactOutputError(f"the host's answer cannot be read: {error}") from error


# fields of NodeState whose value is what follows a key of the same name
_TEXTS = (
    "hostname", "machine_id", "boot_id", "arch", "kernel", "os_id", "os_version", "os_codename",
    "os_name", "driver_module", "cloud_init", "container", "cluster_ca", "dkms_package", "run_lock",
    "load_balancer", "keepalived", "virtual_address", "headers_package", "cgroup_controllers",
)  # fmt: skip
# fields whose value is the number of a key of the same name
_NUMBERS = ("cgroup", "cpus", "mig_instances", "initrd_kib")
# field -> the key that repeats, once for each item
_LISTS = {
    "nvlink_bridges": "nvlink_bridge", "remnants": "remnant", "swap": "swap", "foreign": "foreign",
    "half_made": "half_made", "vendor_stacks": "vendor_stack", "statoverrides": "statoverride",
}  # fmt: skip
_SETS = {"kernel_features": "kernel_feature", "modules": "module", "holds": "hold"}
# field -> the key whose value is a name and, behind a space, what belongs to it
_MAPPINGS = {
    "kernel_headers": "kernel_headers", "packages": "package", "sysctls": "sysctl",
    "kubeconfigs": "kubeconfig", "fabric_managers": "fabric_manager",
}  # fmt: skip
# field -> what reads it of the script's answer
_PARTS: Mapping[str, Callable[[Fields], Any]] = {
    "boot": boot.parse,
    "dkms": dkms.parse,
    "folders": folders.parse,
    "module_loading": module_loading.parse,
    "packet_filter": packet_filter.parse,
    "proxy_variables": environment.parse,
    "remains": remains.parse,
    "repository_keys": repository_keys.parse,
    "secure_boot": secure_boot.parse,
    "software": software.parse,
}


def _state(values: Fields) -> NodeState:
    first = values.first
    addresses = tuple(_second(item).partition("/")[0] for item in values.all("address"))
    driver, is_open = loaded_driver.parse(first("driver"))
    plain: dict[str, Any] = {
        **{name: first(name) for name in _TEXTS},
        **{name: values.number(name) for name in _NUMBERS},
        **{name: tuple(values.all(key)) for name, key in _LISTS.items()},
        **{name: frozenset(values.all(key)) for name, key in _SETS.items()},
        **{name: values.pairs(key) for name, key in _MAPPINGS.items()},
        **{name: parse_part(values) for name, parse_part in _PARTS.items()},
    }
    return NodeState(
        **plain,
        uid=int(first("uid")),
        headers=first("headers") or "missing",
        memory_mib=values.number("memory_kib") // 1024,
        clock=float(first("clock")),
        default_address=first("default_source") or next(iter(addresses), ""),
        ntp_synchronised=first("ntp") == "yes",
        driver_loaded=driver,
        driver_open=is_open,
        dnf_proxy=first("dnf_proxy") == "1",
        led_at=int(first("led_at") or 0),
        selinux_enforcing=first("selinux") == "enforcing",
        run_lock_age=values.number("run_lock_age") if "run_lock_age" in values else None,
        pci=tuple(pci.parse(item, values.pairs("gpu_uuid")) for item in values.all("pci")),
        package_lock_holders=tuple(dict.fromkeys(values.all("package_lock"))),
        addresses=addresses,
        interfaces=tuple((item.split()[0], _second(item)) for item in values.all("address")),
        routes=tuple((item.split()[0], _second(item)) for item in values.all("route")),
        other_networks=tuple(values.pairs("other_network").items()),
        ports=_ports(values),
        units={item.split()[0]: _unit(item) for item in values.all("unit")},
    )


def _second(item: str) -> str:
    return item.partition(" ")[2].strip()


def _unit(item: str) -> Unit:
    _, active, enabled = (*item.split(" "), "", "")[:3]
    return Unit(active, enabled)


def _ports(values: Fields) -> dict[int, str]:
    ports = {int(item, 16): "?" for item in values.all("hexport")}
    return ports | {int(item.split()[0]): _second(item) for item in values.all("port")}
