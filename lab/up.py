"""Brings a lab up and down, in the order that leaves a re-run the least to do."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from lab import failures, machines, network, preflight, processes, publishers, state
from lab.alert_receivers import service as alerts
from lab.build.base import base_root
from lab.build.programs import build_all
from lab.build.progress import Progress, duration
from lab.build.recipe import Recipe
from lab.build.software_docker import recipes as docker_recipes
from lab.build.software_kubernetes import PREVIOUS_MINOR, PREVIOUS_PATCH
from lab.build.software_kubernetes import recipes as earlier_kubernetes
from lab.build.store import unused_since
from lab.debian_releases import BOOKWORM, DebianRelease
from lab.lives import PACKAGES, Life
from lab.lives.dress import dress
from lab.mirror import docroot, parts
from lab.mirror import service as mirror
from lab.state import Extra, Lab, Machine

# compiled only for the labs that have it
_EXTRAS: dict[Extra, Callable[[], list[Recipe]]] = {
    "docker": docker_recipes,
    "previous-release": partial(earlier_kubernetes, PREVIOUS_MINOR),
    "previous-patch": partial(earlier_kubernetes, PREVIOUS_PATCH),
}


def up(
    name: str,
    gpus: tuple[int, ...],
    single: bool,
    progress: Progress,
    extra: Extra | None = None,
    release: DebianRelease = BOOKWORM,
    upstream: bool = False,
    control_planes: int = 1,
    lives: Sequence[Life] = (),
) -> Lab:
    """Make everything the lab `name` consists of, as far as it is not there, and start it.

    + extra: what its mirror has besides; lives: what its machines were used for before
    + release: of its machines' Debian
    + upstream: what is not simulated comes from its publishers, and is not built

    Machines boot while programs are built. Raises `LabError`; calling again goes on from there.
    """
    started = time.monotonic()
    preflight.require(publishers.missing() if upstream else ())
    lab = state.ensure(name, gpus, single, release, upstream, control_planes)
    with state.lock(f"lab-{name}", wait=False), failures.resumable():
        _trust(lab)
        base = base_root(release, progress)
        with ThreadPoolExecutor(max_workers=1) as pool:
            booted = pool.submit(_machines, lab, base, progress)
            # Builds stay in this thread: only it learns of Ctrl-C, and ends them then.
            builds = build_all(progress, _program_names(upstream), _also(extra, lives))
            booted.result()
        if upstream:
            docroot.install(lab, parts.simulated_parts(release, builds, progress))
        else:
            extra_debs = PACKAGES if lives else ()
            docroot.install(lab, parts.make_parts(release, base, builds, progress, extra_debs))
            preflight.note_complete()
        _serve(lab)
        dress(lab, lives, progress)
    progress(f"lab {name} is up after {duration(time.monotonic() - started)}")
    return lab


def _trust(lab: Lab) -> None:
    mirror.trust(lab)
    alerts.trust(lab)
    machines.ensure_ssh_key(lab)


def _program_names(upstream: bool) -> Sequence[str]:
    """The programs that are built; nothing: all."""
    return publishers.RECIPES if upstream else ()


def _serve(lab: Lab) -> None:
    mirror.start(lab)
    alerts.start(lab)


def _also(extra: Extra | None, lives: Sequence[Life]) -> list[Recipe]:
    """What is compiled for this lab besides."""
    extras = {extra, "docker" if any(life.docker for life in lives) else None}
    return [recipe for name in _EXTRAS if name in extras for recipe in _EXTRAS[name]()]


def _machines(lab: Lab, base: Path, progress: Progress) -> None:
    key = parts.repositories(lab.debian)["debian"].key().public()
    if not network.is_up(lab):
        # After a reboot of the host, or when the bridge was taken away: none has a network.
        for machine in lab.machines:
            machines.power_off(lab, machine)
    network.up(lab)

    def bring(machine: Machine) -> None:
        if not lab.root(machine).exists():
            progress(f"{machine.name}: making it ({machine.gpus} simulated GPUs)")
        machines.create(lab, machine, base, key)
        if not machines.is_running(lab, machine):
            progress(f"{machine.name}: booting")
            machines.power_on(lab, machine)

    machines.for_each(lab, bring)
    machines.write_known_hosts(lab)
    machines.for_each(lab, lambda machine: machines.wait_for_ssh(lab, machine, progress))


def down(lab: Lab, progress: Progress) -> None:
    """Stop the lab and remove all of it: machines, network, mirror, state."""
    with state.lock(f"lab-{lab.name}", wait=False):
        for machine in lab.machines:
            progress(f"{machine.name}: off")
            machines.power_off(lab, machine)
        mirror.stop(lab)
        alerts.stop(lab)
        network.down(lab)
        state.remove(lab)
    progress(f"lab {lab.name} is gone")


def prune(progress: Progress) -> None:
    """Remove from the store what neither this checkout nor a lab on this host is made from.

    What this checkout lacks is made first: only then is it known what is used.
    """
    started = time.time()
    builds = build_all(progress)
    parts.make_parts(BOOKWORM, base_root(BOOKWORM, progress), builds, progress)
    used_sources = {part.source for lab in state.labs() for part in docroot.parts_of(lab)}
    for folder in unused_since(started):
        # debootstrap's result is needed again whenever the base system changes, and takes minutes
        if folder not in used_sources and not folder.name.startswith("debootstrap-"):
            progress(f"removing {folder.name}")
            shutil.rmtree(folder)


def clean(progress: Progress) -> None:
    """Take every lab down, and remove all that was built, downloaded or remembered."""
    for lab in state.labs():
        down(lab, progress)
    network.restore_settings()
    for folder in (state.state_dir(), state.cache_dir()):
        if folder.exists():
            progress(f"removing {folder}")
            shutil.rmtree(folder)


def machine_state(lab: Lab, machine: Machine) -> str:
    """`up`, `booting`, `off`, or `stale`: it was up, but not since the host's last boot."""
    folder, unit = lab.machine_dir(machine), lab.unit(machine.name)
    if processes.is_running(unit, folder):
        return "up" if machines.ssh_answers(machine.address) else "booting"
    if (folder / "supervisor.pid").exists() or not network.is_up(lab):
        return "stale"
    return "off"
