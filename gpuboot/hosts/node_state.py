"""How a machine was found: the typed answer of the compound fact (`deploys/facts/node.sh`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuboot.fact_output import FactOutputError, Fields

NVIDIA = "0x10de"
_GPU_CLASSES = ("0x0300", "0x0302")  # VGA controller, 3D controller
_SWITCH_CLASS = "0x0680"  # other bridge: NVSwitch
# a driver metapackage of NVIDIA's repository, with a branch suffix up to R580
_METAPACKAGE = re.compile(r"(nvidia-open|cuda-drivers)(-\d+)?")
_DRIVER = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")


@dataclass(frozen=True)
class PciDevice:
    """An NVIDIA device on the PCI bus. `device` is its id (e.g. 0x2330), `kind` its class."""

    slot: str
    device: int
    kind: str


@dataclass(frozen=True)
class Unit:
    """A systemd unit: `active` is its ActiveState, `enabled` its UnitFileState ("" for none)."""

    active: str
    enabled: str


@dataclass(frozen=True)
class NodeState:
    """One machine at one moment. Sizes in MiB, times in seconds since 1970.

    + default_address: source address of the default route, else the first address
    + container: what container the machine is ("" for a real or virtual machine)
    + headers: kernel headers of the running kernel: installed, available (from apt), missing, or
      unknown while apt has read no index
    + kernel_headers: the headers that go with each installed kernel metapackage -> the same four:
      linux-headers-generic where linux-image-generic is installed
    + abilities: kernel features that are built in, loaded or there as a module
    + driver_loaded: version of the NVIDIA driver in the kernel; "" for none
    + driver_open: the loaded driver is made of the open kernel modules
    + driver_module: version of the module on disk, as modinfo tells; "" where it cannot
    + mig_instances: GPU instances that its GPUs are divided into
    + nvlink_bridges: PCI addresses of the ConnectX devices that lead to NVSwitches (NVLink 5)
    + packages: versions of installed packages that matter here, by name
    + broken: packages that dpkg left half installed, with their state
    + apt_busy: processes that hold the package manager's locks
    + ports: listening TCP ports, with the name of the listening process ("?": not known)
    + routes: networks (CIDR) with the device they lead to
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
    disk_mib: int
    clock: float
    default_address: str
    secure_boot: bool = False
    ntp_synchronised: bool = False
    driver_loaded: str = ""
    driver_open: bool = False
    driver_module: str = ""
    mig_instances: int = 0
    cloud_init: str = ""
    container: str = ""
    cluster_ca: str = ""
    clock_skew_s: float = 0.0
    abilities: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    pci: tuple[PciDevice, ...] = ()
    nvlink_bridges: tuple[str, ...] = ()
    kernel_headers: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset()
    remnants: tuple[str, ...] = ()
    dkms: tuple[str, ...] = ()
    apt_busy: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    ports: Mapping[int, str] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    kubeconfigs: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[PciDevice, ...]:
        """The NVIDIA GPUs on the PCI bus."""
        return tuple(item for item in self.pci if item.kind.startswith(_GPU_CLASSES))

    @property
    def nvswitches(self) -> tuple[PciDevice, ...]:
        """The NVSwitches on the PCI bus; NVLink 5 has none there (`gpuboot.hosts.fabric`)."""
        return tuple(item for item in self.pci if item.kind.startswith(_SWITCH_CLASS))

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
        found = self.units.get(unit)
        return found is not None and found.active == "active"


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


def _state(values: Fields) -> NodeState:
    addresses = tuple(_second(item).partition("/")[0] for item in values.all("address"))
    driver, is_open = driver_version(values.first("driver"))
    return NodeState(
        uid=int(values.first("uid")),
        hostname=values.first("hostname"),
        machine_id=values.first("machine_id"),
        boot_id=values.first("boot_id"),
        arch=values.first("arch"),
        kernel=values.first("kernel"),
        os_id=values.first("os_id"),
        os_version=values.first("os_version"),
        os_codename=values.first("os_codename"),
        os_name=values.first("os_name"),
        headers=values.first("headers") or "missing",
        cgroup=values.number("cgroup"),
        memory_mib=values.number("memory_kib") // 1024,
        cpus=values.number("cpus"),
        disk_mib=values.number("disk_kib") // 1024,
        clock=float(values.first("clock")),
        default_address=values.first("default_source") or next(iter(addresses), ""),
        secure_boot=values.first("secure_boot") == "1",
        ntp_synchronised=values.first("ntp") == "yes",
        driver_loaded=driver,
        driver_open=is_open,
        driver_module=values.first("driver_module"),
        mig_instances=values.number("mig_instances"),
        cloud_init=values.first("cloud_init"),
        container=values.first("container"),
        cluster_ca=values.first("cluster_ca"),
        abilities=frozenset(values.all("ability")),
        modules=frozenset(values.all("module")),
        pci=tuple(_pci(item) for item in values.all("pci")),
        kernel_headers=values.pairs("kernel_headers"),
        nvlink_bridges=tuple(values.all("nvlink_bridge")),
        packages=values.pairs("package"),
        broken=tuple(values.all("broken")),
        holds=frozenset(values.all("hold")),
        remnants=tuple(values.all("remnant")),
        dkms=tuple(values.all("dkms")),
        apt_busy=tuple(dict.fromkeys(values.all("apt_busy"))),
        swap=tuple(values.all("swap")),
        sysctls=values.pairs("sysctl"),
        addresses=addresses,
        routes=tuple((item.split()[0], _second(item)) for item in values.all("route")),
        ports=_ports(values),
        units={item.split()[0]: _unit(item) for item in values.all("unit")},
        foreign=tuple(values.all("foreign")),
        kubeconfigs=values.pairs("kubeconfig"),
    )


def _pairs(items: Iterable[str]) -> dict[str, str]:
    return {item.split(" ", 1)[0]: item.partition(" ")[2].strip() for item in items}


def _second(item: str) -> str:
    return item.partition(" ")[2].strip()


def _pci(item: str) -> PciDevice:
    slot, device, kind = item.split()
    return PciDevice(slot, int(device, 16), kind)


def _unit(item: str) -> Unit:
    _, active, enabled = (*item.split(" "), "", "")[:3]
    return Unit(active, enabled)


def _ports(values: Fields) -> dict[int, str]:
    ports = {int(item, 16): "?" for item in values.all("hexport")}
    return ports | {int(item.split()[0]): _second(item) for item in values.all("port")}


def driver_version(line: str) -> tuple[str, bool]:
    """Version and flavour from the first line of /proc/driver/nvidia/version.

    `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build …`
    """
    if not line:
        return "", False
    found = _DRIVER.search(f"{line} ")
    if not found:
        raise ValueError(f"no version in {line!r}")
    return found[1], "Open Kernel Module" in line
