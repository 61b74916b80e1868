"""Light machines: many small systemd-nspawn machines of one lab, on overlays of one template.

The template is the lab's base system with what images of servers have besides. A machine is an
overlay on it, so making one takes a moment and resetting it is removing its own layer. A snapshot
is such a layer that was kept; machines of the same role start from it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import accounting, template
from bench.matrix import MANY
from bench.site import Host, Site
from lab import machines, network, processes, state
from lab.build.progress import Progress
from lab.gpusim.pci_devices import install_pci_devices
from lab.host import run
from lab.mirror import service as mirror
from lab.state import Lab, LabError, Machine

# of the lab of light machines; another name is another set of machines beside it
NAME = os.environ.get("GPUBOOT_BENCH", "bench")
GPUS = 2
DELIVERED = "fresh"
_AT_ONCE = 4
# what a machine that a side converges from how it is delivered writes to the disk
_GROWS_GB = 0.8
_SPARE_GB = 3  # for everything else on this computer


def plan(index: int) -> Lab:
    """The lab of light machines: node1 is the control plane, all others are workers."""
    nodes = (
        Machine(
            f"node{number}",
            f"10.77.{index}.{10 + number}",
            GPUS,
            "control_plane" if number == 1 else "worker",
        )
        for number in range(1, MANY + 1)
    )
    return Lab(NAME, index, tuple(nodes))


def ensure(progress: Progress) -> Lab:
    """The lab with its template, mirror and network; no machine is started. Takes a moment again.

    Raises `LabError` when this host lacks something.
    """
    with state.lock("labs"):
        exists = (state.labs_dir() / NAME / "lab.json").exists()
        lab = state.load(NAME) if exists else plan(state.free_index())
        state.save(lab)
    template.ensure(lab, progress)
    network.up(lab)
    mirror.start(lab)
    _allow_many()
    return lab


def _allow_many() -> None:
    """Every systemd takes several inotify instances, and the kernel's 128 are for all of them."""
    for name, value in (("max_user_instances", 8192), ("max_user_watches", 524288)):
        path = Path("/proc/sys/fs/inotify") / name
        if int(path.read_text()) < value:
            path.write_text(str(value))


def site(lab: Lab, count: int) -> Site:
    """The first `count` machines as a site."""
    hosts = tuple(Host(m.name, m.address, m.role, m.gpus) for m in lab.machines[:count])
    bench_site = Site(
        lab.name, lab.folder / "sites" / str(count), lab.ssh_key, lab.known_hosts, hosts
    )
    bench_site.save()
    return bench_site


def boot(lab: Lab, count: int, snapshot: str, progress: Progress) -> None:
    """Let the first `count` machines run, and no others; new ones start from the snapshot."""
    only(lab, count)
    missing = [m for m in lab.machines[:count] if not machines.is_running(lab, m)]
    reset(lab, missing, snapshot, progress)


def only(lab: Lab, count: int) -> None:
    """Remove all machines but the first `count`."""
    for machine in lab.machines[count:]:
        if is_mounted(lab, machine):
            discard(lab, machine)


def reset(lab: Lab, targets: Sequence[Machine], snapshot: str, progress: Progress) -> None:
    """Make the machines anew from a snapshot (`FRESH`: as delivered), boot them, and wait.

    Raises `LabError` where the disk has no room for what they are going to write.
    """
    if snapshot == DELIVERED:
        _require_room(lab, len(targets))

    def start(machine: Machine) -> None:
        discard(lab, machine)
        _make(lab, machine, snapshot)
        machines.power_on(lab, machine)

    _for_each(targets, start)
    silent_progress: Progress = lambda line: None  # noqa: E731
    _for_each(targets, lambda machine: machines.wait_for_ssh(lab, machine, silent_progress))
    _for_each(targets, lambda machine: _settled(lab, machine))
    if targets:
        progress(f"{len(targets)} machines are up ({snapshot})")


def _require_room(lab: Lab, count: int) -> None:
    free, needed = shutil.disk_usage(lab.folder).free / 1e9, count * _GROWS_GB + _SPARE_GB
    if free < needed:
        raise LabError(
            f"{count} machines need {needed:.0f} GB of free disk for {lab.folder}; there are "
            f"{free:.0f}. GPUBOOT_STATE names another place"
        )


def _settled(lab: Lab, machine: Machine) -> None:
    """Wait until the machine's boot is over; "degraded" is as good as "running" here."""
    machines.ssh(lab, machine, "systemctl is-system-running --wait", check=False)


def _for_each(machines: Iterable[Machine], action: Callable[[Machine], None]) -> None:
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        list(pool.map(action, machines))


def _make(lab: Lab, machine: Machine, snapshot: str) -> None:
    folder, root = lab.machine_dir(machine), lab.root(machine)
    images = folder / "images"
    for path in (folder / "own", folder / "work", images, root):
        path.mkdir(parents=True, exist_ok=True)
    lower = [str(template.root(lab))]
    if snapshot != DELIVERED:
        lower.insert(0, str(layer(lab, machine.role, snapshot)))
    options = f"lowerdir={':'.join(lower)},upperdir={folder / 'own'},workdir={folder / 'work'}"
    run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)])
    # overlayfs, on which layers of images are unpacked, cannot work on itself
    target = root / "var/lib/containerd"
    target.mkdir(mode=0o711, exist_ok=True)
    run(["mount", "--bind", str(images), str(target)])
    machines.identify(lab, machine, root)
    install_pci_devices(root, machine.gpus, lab.seed(machine))


def is_mounted(lab: Lab, machine: Machine) -> bool:
    return lab.root(machine).is_mount()


def discard(lab: Lab, machine: Machine) -> None:
    """Cut the machine's power and remove all it had."""
    halt(lab, machine)
    _remove(lab.machine_dir(machine))


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def halt(lab: Lab, machine: Machine) -> None:
    """Cut the machine's power; its own layer stays."""
    machines.power_off(lab, machine)
    while is_mounted(lab, machine):
        run(["umount", "--recursive", str(lab.root(machine))])


def layer(lab: Lab, role: str, snapshot: str) -> Path:
    """Where the snapshot of a role is kept."""
    return lab.folder / "snapshots" / snapshot / role


def save_snapshot(lab: Lab, machines: Sequence[Machine], snapshot: str) -> None:
    """Keep the machines' own layers as a snapshot, one for each role, and remove the machines.

    It takes the place of every other snapshot, so none may run from one.
    """
    only(lab, len(machines))
    _remove(lab.folder / "snapshots")
    for machine in machines:
        halt(lab, machine)
        target = layer(lab, machine.role, snapshot)
        _remove(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        (lab.machine_dir(machine) / "own").rename(target)
        for name in ("var/log/journal", "var/cache/apt/archives"):
            for path in (target / name).glob("*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        discard(lab, machine)


def has(lab: Lab, snapshot: str) -> bool:
    """Whether the snapshot is there for both roles."""
    return all(layer(lab, role, snapshot).is_dir() for role in ("control_plane", "worker"))


def edit(lab: Lab, machine: Machine, path: str, old: str, new: str) -> None:
    """Replace a line of a file on the machine, as a person with an editor would.

    Raises `ValueError` when the file has no such line.
    """
    file = lab.root(machine) / path.lstrip("/")
    lines = file.read_text().split("\n")
    lines[lines.index(old)] = new
    file.write_text("\n".join(lines))


def down(lab: Lab, progress: Progress) -> None:
    """Remove all machines, the mirror, the network and the lab's folder."""
    from lab.up import down as take_down

    for machine in lab.machines:
        if is_mounted(lab, machine) or lab.machine_dir(machine).exists():
            discard(lab, machine)
    take_down(lab, lambda line: None)  # a line for each of many machines that are off already
    progress("machines, mirror and network are gone")


def cpu_s(lab: Lab, count: int) -> float:
    """CPU time of the first machines since each of them was started."""
    folders = (lab.machine_dir(machine) / "cgroups" for machine in lab.machines[:count])
    return sum(accounting.cpu_s(map(Path, file.read_text().split())) for file in folders)


def memory_mib(lab: Lab, count: int) -> dict[str, float]:
    """Memory of each of the first machines in MiB, by its processes' own pages and their share."""
    memory_by_machine = {}
    for machine in lab.machines[:count]:
        pids = processes.members(lab.unit(machine.name), lab.machine_dir(machine))
        memory_by_machine[machine.name] = sum(map(_pss_kib, pids)) / 1024
    return memory_by_machine


def _pss_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
