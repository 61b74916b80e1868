"""Packages as a cluster needs them: exact versions, and holds, which pyinfra's own do not know."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyinfra.api.exceptions import OperationValueError
from pyinfra.api.host import Host
from pyinfra.context import host

from deploys.engine import background, changes, planned_packages
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.download_retries import with_retries
from deploys.engine.framed import Framed
from deploys.engine.operation import operation
from deploys.parts.packages import apt_fact as apt_facts
from deploys.parts.packages import dnf_fact as dnf_facts
from deploys.parts.packages.fact import PackageState
from deploys.parts.packages.package_downloads import COMMANDS, indices, install
from gpuboot.cluster.node_upgrade import mismatched
from gpuboot.hosts.package_changes import package_changes
from gpuboot.hosts.platforms import PackageManager
from gpuboot.plan import Change

_FACTS: Mapping[PackageManager, type[Framed[PackageState]]] = {
    "apt": apt_facts.Packages,
    "dnf": dnf_facts.Packages,
}


@operation()
def finished(manager: PackageManager) -> Commands:
    """Ensure that no installation is half done, e.g. because a run or a machine was cut off.

    While one is, the package manager refuses every other.

    + manager: the program that installs packages
    """
    commands = COMMANDS[manager]
    rows: list[tuple[str, str, str]] = read(apt_facts.Unfinished) if manager == "apt" else []
    unfinished_rows = [tuple(row) for row in rows]
    interrupted = {
        name: version for name, state, version in unfinished_rows if state == "half-installed"
    }
    command = commands.finish(interrupted) if unfinished_rows else None
    if command is None:
        host.noop("no installation is half done")
        return
    changes.record(
        *[
            Change(subject=f"installation of {name}", field="state", old=state, new="finished")
            for name, state, _ in unfinished_rows
        ]
    )
    yield with_retries(
        command, "packages", failed=f"{manager} cannot finish an installation that was interrupted"
    )


@operation()
def fetched(versions: Mapping[str, str], manager: PackageManager) -> Commands:
    """Start downloads of packages that are installed later, in the background.

    Whatever goes wrong with them, `installed` downloads what it lacks, and tells what is wrong. On
    hosts whose package manager can do one thing at a time this does nothing.

    + versions, manager: as for `installed`, in the order of the downloads
    """
    state = read(_FACTS[manager], packages=sorted(versions))
    missing = mismatched(versions, state.versions)
    script = COMMANDS[manager].fetch(missing) if missing else None
    if script is None:
        host.noop("nothing is to be downloaded ahead")
        return
    changes.record(
        Change(
            subject="packages of later phases", new=f"{len(missing)} downloaded in the background"
        )
    )
    yield background.started("gpuboot-fetch", "gpuboot: download packages", script)


@operation()
def installed(
    versions: Mapping[str, str],
    manager: PackageManager,
    hold: bool | Sequence[str] = False,
    available: Sequence[str] = (),
) -> Commands:
    """Ensure packages are installed at exactly these versions.

    The first that installs something on a host in a run has all package indices read.

    + versions: package name -> version, a pattern like `2.3.7-*`, or "" for any version
    + manager: the program that installs them
    + hold: keep the program from changing them in any other way; names: these of them alone
    + available: packages whose available versions to show when this fails; default: those that
      are to have a version
    """
    if not versions:
        raise OperationValueError("packages: name at least one package")
    commands, names = COMMANDS[manager], sorted(versions)
    state = read(_FACTS[manager], packages=names)
    missing = mismatched({name: versions[name] for name in names}, state.versions)
    # installing a held package at another version takes its hold away
    held_names = hold if isinstance(hold, Sequence) else names if hold else ()
    unheld = [name for name in held_names if name in missing or name not in state.holds]
    if not missing and not unheld:
        host.noop(f"packages are installed: {', '.join(names)}")
        return
    planned_packages.note_packages(missing)
    changes.record(*package_changes(state.versions, missing, unheld))
    if missing:
        yield indices(manager)
    held_packages = [name for name in missing if name in state.holds]
    if held_packages and (release := commands.release(held_packages)):
        yield release
    if missing:
        yield install(manager, missing, available)
    if unheld:
        yield commands.hold(unheld)


def question(
    target: Host, packages: Iterable[str], manager: PackageManager
) -> tuple[Host, type[Framed[PackageState]], dict[str, Any]]:
    """What `installed` reads of a host, for `deploys.engine.answers.foresee`."""
    return target, _FACTS[manager], {"packages": sorted(packages)}
