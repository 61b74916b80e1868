"""What `deploys/parts/diagnose/fact.sh` says of a host, beside the other facts about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuboot.diagnose import log_lines
from gpuboot.diagnose.log_lines import Line
from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class UnitState:
    """A systemd unit: `active`, `sub`: its states; `result`, `status`: how it ended last."""

    active: str
    sub: str
    result: str
    status: str
    load: str = "loaded"


@dataclass(frozen=True)
class Disk:
    """A file system: used size and inodes in per cent, and KiB that are free."""

    path: str
    used: int
    free_kib: int
    inodes: int


@dataclass(frozen=True)
class Peer:
    """How this host reaches another one of the pod network: device and source address."""

    address: str
    device: str
    source: str


@dataclass(frozen=True)
class Vxlan:
    """A link of the pod network: the address that others reach it by, and the device below it."""

    name: str
    local: str
    below: str


@dataclass(frozen=True, kw_only=True)
class Details:
    """The state of a host at one moment.

    + now: its own clock, seconds since 1970
    + logs: unit or part of the control plane -> its last lines: of units those of this boot and the
      last hour that complain
    + kernel: lines of the kernel log about GPUs, modules, storage and routes
    + uptime_s: seconds since it booted
    + module_file, module_signer: of the NVIDIA module on disk; "" where there is none
    + secure_boot: what mokutil says of it; "" without mokutil
    + mok, mok_waiting: names on the keys that are enrolled, and that wait for a reboot
    + kernels: those with modules on disk
    + char_links: links to NVIDIA devices in /dev/char
    + kubelet_cgroup: cgroup driver of the kubelet; "" where its configuration does not say
    + runtimes, runtime_cgroups: handlers in containerd's files, and whether each uses systemd
    + toml: file of containerd's configuration -> its version
    + containerd_error: what containerd says of files that it cannot read
    + read_only: mount points that cannot be written
    + memory_pressure: share of the last 10 s in which all work waited for memory, in per cent
    + threads: processes and threads that there are, and how many the kernel allows
    + mtu: device -> bytes
    + rp_filter: device -> 0 off, 1 strict, 2 loose
    + cni: configurations of the pod network
    + conntrack: connections that the kernel tracks, and how many it may
    + server, api: the API server's address as the kubelet has it, and curl's answer: HTTP's
      status, or curl's exit code before it
    + server_address: where it is, by the host's names; unresolved: its name, if that is not found;
      both only where it did not answer
    + no_manifest: parts of the control plane without a manifest
    + etcd: what the member of this host answered about its health; "" where there is none
    """

    now: float = 0.0
    units: Mapping[str, UnitState] = field(default_factory=dict)
    logs: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    kernel: tuple[Line, ...] = ()
    uptime_s: int = 0
    module_file: str = ""
    module_signer: str = ""
    secure_boot: str = ""
    mok: tuple[str, ...] = ()
    mok_waiting: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    char_links: int = 0
    kubelet_cgroup: str = ""
    runtimes: tuple[str, ...] = ()
    runtime_cgroups: Mapping[str, bool] = field(default_factory=dict)
    toml: Mapping[str, str] = field(default_factory=dict)
    containerd_error: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()
    read_only: tuple[str, ...] = ()
    memory_pressure: float = 0.0
    threads: tuple[int, int] = (0, 0)
    resolv_file: str = ""
    resolv: tuple[str, ...] = ()
    mtu: Mapping[str, int] = field(default_factory=dict)
    default_routes: tuple[str, ...] = ()
    vxlan: tuple[Vxlan, ...] = ()
    peers: tuple[Peer, ...] = ()
    rp_filter: Mapping[str, int] = field(default_factory=dict)
    cni: tuple[str, ...] = ()
    conntrack: tuple[int, int] = (0, 0)
    server: str = ""
    api: str = ""
    server_address: str = ""
    unresolved: str = ""
    no_manifest: tuple[str, ...] = ()
    etcd: str = ""


# field -> its key in what the script prints
_TEXTS = (
    *("module_file", "module_signer", "secure_boot", "kubelet_cgroup"),
    *("resolv_file", "server", "api", "server_address", "unresolved", "etcd"),
)
_LISTS = {
    **{name: name for name in ("mok", "mok_waiting", "containerd_error")},
    **{name: name for name in ("read_only", "resolv", "cni", "no_manifest")},
    "kernels": "kernel_installed",
    "default_routes": "default_route",
}


def parse(output: Iterable[str]) -> Details:
    """What the script printed. Raises `FactOutputError` and ValueError."""
    values = Fields(output)
    now = float(values.first("now") or 0)
    booted = now - values.number("uptime") if now else 0.0
    logs: dict[str, list[Line]] = defaultdict(list)
    for unit, line in values.words("log", 2):
        logs[unit].append(log_lines.parse(line))
    plain: dict[str, Any] = {
        **{name: values.first(name) for name in _TEXTS},
        **{name: tuple(values.all(key)) for name, key in _LISTS.items()},
    }
    return Details(
        **plain,
        now=now,
        kernel=tuple(log_lines.parse_kernel(line, booted) for line in values.all("kernel")),
        units={name: UnitState(*columns) for name, *columns in values.words("state", 6)},
        logs={unit: tuple(unit_lines) for unit, unit_lines in logs.items()},
        uptime_s=values.number("uptime"),
        char_links=values.number("char_links"),
        runtimes=tuple(dict.fromkeys(values.all("runtime"))),
        runtime_cgroups={
            name: value == "true" for name, value in values.pairs("runtime_cgroup").items()
        },
        toml=values.pairs("toml"),
        disks=tuple(
            Disk(path, int(used or 0), int(free or 0), int(inodes or 0))
            for path, used, free, inodes in values.words("disk", 4)
        ),
        memory_pressure=float(values.first("memory_pressure") or 0),
        mtu={name: int(size) for name, size in values.pairs("mtu").items()},
        threads=(values.number("threads"), values.number("max_threads")),
        vxlan=tuple(Vxlan(*row) for row in values.words("vxlan", 3)),
        conntrack=(values.number("conntrack_count"), values.number("conntrack_max")),
        peers=tuple(Peer(*row) for row in values.words("peer", 3)),
        rp_filter={name: int(mode) for name, mode in values.pairs("rp_filter").items()},
    )
