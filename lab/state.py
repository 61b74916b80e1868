"""What the lab remembers: labs, their machines and addresses, and whether they still run.

`lab.json` in each lab's folder is the interface to `inventories/lab.py`. It holds what was
planned; what runs is asked of the kernel each time, so a reboot of the host needs no clean-up
of state.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lab.debian_releases import BOOKWORM, DEBIAN_RELEASES, DebianRelease

Role = Literal["control_plane", "worker"]
# What only some labs have in their mirror: Docker's engine, earlier releases of Kubernetes.
Extra = Literal["docker", "previous-release", "previous-patch"]

MIRROR_NAME = "mirror.lab"
MIRROR_URL = f"https://{MIRROR_NAME}"
_NAME = re.compile(r"^[a-z][a-z0-9-]{0,19}$")
_MAX_LABS = 200
_DEVICES = Path("/sys/class/net")


class LabError(RuntimeError):
    """The lab cannot do what was requested. The text says what is wrong and what to do."""


@dataclass(frozen=True)
class Machine:
    """A machine of a lab. `number` is the last octet of its address; `gpus` are simulated."""

    name: str
    address: str
    gpus: int
    role: Role

    @property
    def number(self) -> int:
        return int(self.address.rsplit(".", 1)[1])


@dataclass(frozen=True)
class Lab:
    """A lab: a private network, a mirror on its host side, and machines.

    upstream: its machines reach the internet, and have from the mirror what is simulated only.
    """

    name: str
    index: int
    machines: tuple[Machine, ...]
    debian: DebianRelease = BOOKWORM
    upstream: bool = False

    @property
    def subnet(self) -> str:
        return f"10.77.{self.index}.0/24"

    @property
    def host_address(self) -> str:
        """The host's address on the bridge; the mirror listens there."""
        return f"10.77.{self.index}.1"

    @property
    def bridge(self) -> str:
        return f"gblab{self.index}"

    @property
    def folder(self) -> Path:
        return labs_dir() / self.name

    @property
    def ssh_key(self) -> Path:
        return self.folder / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "ssh" / "known_hosts"

    @property
    def ca(self) -> Path:
        """The lab CA's certificate (PEM) that signs the mirror's."""
        return self.folder / "ca.crt"

    @property
    def docroot(self) -> Path:
        return self.folder / "mirror"

    def machine_dir(self, machine: Machine) -> Path:
        return self.folder / "machines" / machine.name

    def root(self, machine: Machine) -> Path:
        """The machine's root file system."""
        return self.machine_dir(machine) / "root"

    def unit(self, part: str) -> str:
        """Name of a machine or service of this lab that is unique on the host."""
        return f"gb{self.index}-{part}"

    def seed(self, machine: Machine) -> int:
        """Seed of the machine's GPU UUIDs: different for each machine of each lab."""
        return 0x51AA0000 + 0x100 * self.index + machine.number

    def get(self, name: str) -> Machine:
        """The machine called `name`. Raises `LabError` with the names there are."""
        for machine in self.machines:
            if machine.name == name:
                return machine
        names = ", ".join(machine.name for machine in self.machines)
        raise LabError(f"lab {self.name} has no machine {name!r}; it has: {names}")

    @property
    def leader(self) -> Machine:
        """The first control-plane machine."""
        return next(machine for machine in self.machines if machine.role == "control_plane")

    def to_json(self) -> dict[str, Any]:
        """The content of lab.json."""
        return {
            "name": self.name,
            "index": self.index,
            "debian": self.debian.version,
            "upstream": self.upstream,
            "subnet": self.subnet,
            "bridge": self.bridge,
            "mirror": {"url": MIRROR_URL, "address": self.host_address, "ca": str(self.ca)},
            "ssh_key": str(self.ssh_key),
            "ssh_known_hosts": str(self.known_hosts),
            "machines": [asdict(machine) for machine in self.machines],
        }


def from_json(data: dict[str, Any]) -> Lab:
    """The lab that `Lab.to_json` described. Raises `LabError` for anything else."""
    try:
        machines = tuple(Machine(**machine) for machine in data["machines"])
        release = DEBIAN_RELEASES[data.get("debian", "12")]
        return Lab(data["name"], data["index"], machines, release, data.get("upstream", False))
    except (KeyError, TypeError) as error:
        raise LabError(f"this is no lab.json: {error!r}") from error


def cache_dir() -> Path:
    """Where builds and downloads are kept (`GPUBOOT_CACHE`, default /var/cache/gpuboot)."""
    return Path(os.environ.get("GPUBOOT_CACHE") or "/var/cache/gpuboot")


def state_dir() -> Path:
    """Where running labs live (`GPUBOOT_STATE`, default /var/lib/gpuboot)."""
    return Path(os.environ.get("GPUBOOT_STATE") or "/var/lib/gpuboot")


def labs_dir() -> Path:
    return state_dir() / "labs"


def plan(
    name: str,
    index: int,
    gpus: tuple[int, ...],
    single: bool,
    release: DebianRelease = BOOKWORM,
    upstream: bool = False,
    control_planes: int = 1,
) -> Lab:
    """The machines of a lab.

    `single`: one machine, node1, that is control plane and has `gpus[0]` GPUs. Else cp1 and those
    that follow it, and one worker gpu<i> for each number in `gpus`.
    """
    if not _NAME.match(name):
        raise LabError(f"{name!r} is no name for a lab: use a-z, 0-9 and -, at most 20 characters")
    if not gpus or any(not 0 <= count <= 16 for count in gpus) or len(gpus) > 20:
        raise LabError("give 1 to 20 machines with 0 to 16 GPUs each, e.g. --gpus 2,4")
    if not 1 <= control_planes <= 5 or (single and control_planes > 1):
        raise LabError("a lab has 1 to 5 control planes, and --single is one machine")
    if single:
        if len(gpus) > 1:
            raise LabError("a single-machine lab takes one number of GPUs, e.g. --gpus 2")
        machine = Machine("node1", f"10.77.{index}.11", gpus[0], "control_plane")
        return Lab(name, index, (machine,), release, upstream)
    workers = (
        Machine(f"gpu{i}", f"10.77.{index}.{20 + i}", count, "worker")
        for i, count in enumerate(gpus, start=1)
    )
    places = range(1, control_planes + 1)
    controls = (Machine(f"cp{i}", f"10.77.{index}.{10 + i}", 0, "control_plane") for i in places)
    return Lab(name, index, (*controls, *workers), release, upstream)


def labs() -> list[Lab]:
    """All labs on this host, by index."""
    every_lab = [load(path.parent.name) for path in labs_dir().glob("*/lab.json")]
    return sorted(every_lab, key=lambda lab: lab.index)


def load(name: str) -> Lab:
    """The lab called `name`. Raises `LabError` when there is none."""
    path = labs_dir() / name / "lab.json"
    try:
        return from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        lab_names = ", ".join(sorted(p.parent.name for p in labs_dir().glob("*/lab.json")))
        hint = f"there are: {lab_names}" if lab_names else "scripts/lab makes one"
        raise LabError(f"there is no lab {name!r}; {hint}") from None
    except json.JSONDecodeError as error:
        raise LabError(f"{path} is damaged ({error}); remove its folder and start again") from error


def save(lab: Lab) -> None:
    """Write lab.json in one step."""
    lab.folder.mkdir(parents=True, exist_ok=True)
    path = lab.folder / "lab.json"
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(lab.to_json(), indent=2) + "\n")
    part.replace(path)


def ensure(
    name: str,
    gpus: tuple[int, ...],
    single: bool,
    release: DebianRelease = BOOKWORM,
    upstream: bool = False,
    control_planes: int = 1,
) -> Lab:
    """The lab called `name`: the one there is, or a new one with the lowest free index.

    Raises `LabError` when one exists with other machines than asked for.
    """
    with lock("labs"):
        if (labs_dir() / name / "lab.json").exists():
            lab = load(name)
            expected = plan(name, lab.index, gpus, single, release, upstream, control_planes)
            if expected != lab:
                have = ", ".join(f"{m.name} ({m.gpus} GPUs)" for m in lab.machines)
                have += f" of Debian {lab.debian.version}{', --upstream' if lab.upstream else ''}"
                raise LabError(
                    f"lab {name} exists with other machines: {have}. "
                    f"Take it down first (scripts/lab down --name {name}) or choose another --name."
                )
            return lab
        lab = plan(name, free_index(), gpus, single, release, upstream, control_planes)
        save(lab)
        return lab


def free_index() -> int:
    """The lowest index that no lab of this host has; to be called with the lock "labs" held."""
    used_indexes = {lab.index for lab in labs()} | _bridged()
    index = next((i for i in range(_MAX_LABS) if i not in used_indexes), None)
    if index is None:
        raise LabError("too many labs on this host")
    return index


def _bridged() -> set[int]:
    """Indices of the host's bridges: labs of another state folder have theirs there as well."""
    names = (path.name for path in _DEVICES.glob("gblab*"))
    return {int(name.removeprefix("gblab")) for name in names if name[5:].isdigit()}


def remove(lab: Lab) -> None:
    """Remove a lab's folder, lab.json last, so that an interrupted removal can go on."""
    for entry in lab.folder.iterdir():
        if entry.name != "lab.json":
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.rmtree(lab.folder)


@contextlib.contextmanager
def lock(name: str, wait: bool = True) -> Iterator[None]:
    """Hold a lock of this host, saying so when that takes waiting.

    Raises `LabError` when it is held and `wait` is false.
    """
    folder = state_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise LabError(
                    f"another command is working on {name}: wait for it to end"
                ) from None
            print(f"lab: waiting for another command that works on {name}", file=sys.stderr)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
