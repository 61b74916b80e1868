"""Backups of etcd on a control-plane node: their program and timer, and one before a change."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api.command import StringCommand
from pyinfra.context import host

from deploys.facts.backup import EtcdBackups
from deploys.facts.files import Files
from deploys.facts.kubeadm import Kubeadm
from deploys.facts.units import Units
from deploys.lib import changes
from deploys.lib.answers import foresee, read
from deploys.lib.commands import Commands, shell_failure
from deploys.lib.operation import operation
from deploys.operations import files, units
from deploys.operations.kubeadm import SOCKET
from gpuboot.kubernetes.backup import FILES, PROGRAM, TIMER, of_cluster
from gpuboot.plan import Change

_REMEDY = (
    "see that etcd answers (`crictl ps -a --name etcd`) and the disk has room, and run again; to "
    "go on without a backup: backup.enabled = False"
)


def before(change: str) -> StringCommand:
    """The command that takes a backup before a change of Kubernetes, and fails without one.

    The program is there where backups are switched on; on other hosts nothing is done.

    + change: one word, the reason in the backup's name
    """
    failed = shell_failure(f"no backup of etcd could be taken before this: {change}", _REMEDY)
    return StringCommand(f"test ! -x {PROGRAM} || {PROGRAM} {change} ||", failed)


@operation()
def scheduled(program: str, contents: Mapping[str, str]) -> Commands:
    """Ensure that the program that takes backups is there, and the timer that calls it.

    + program: its text; "": backups are switched off, and nothing of it stays but the backups
    + contents: its other files, as `gpuboot.kubernetes.backup.files` gives them
    """
    if not program:
        yield from _removed()
        return
    wanted: tuple[list[str], ...] = ([PROGRAM], list(contents))
    foresee(
        [
            *((host, Files, {"paths": paths}) for paths in wanted),
            (host, Units, {"units": [TIMER]}),
        ]
    )
    yield from files.present._inner({PROGRAM: program}, mode="755")
    changed = False
    for command in files.present._inner(contents):
        changed = True
        yield command
    if changed:
        yield StringCommand("systemctl daemon-reload")
    yield from units.ensured([TIMER])
    if changed:
        yield StringCommand("systemctl restart", TIMER)


def _removed() -> Commands:
    foresee([(host, Units, {"units": [TIMER]}), (host, Files, {"paths": [PROGRAM, *FILES]})])
    if TIMER in read(Units, units=[TIMER]):
        yield StringCommand("systemctl disable --now", TIMER)
    yield from files.present._inner({}, absent=[PROGRAM, *FILES])


@operation()
def first(folder: str) -> Commands:
    """Ensure that there is a backup, since the timer's first one may be hours away.

    + folder: where they are kept
    """
    foresee([(host, Kubeadm, {"socket": SOCKET}), (host, EtcdBackups, {"folder": folder})])
    state = read(Kubeadm, socket=SOCKET)
    if "manifests/kube-apiserver.yaml" not in state.files or state.started:
        host.noop("no control plane runs here yet")
        return
    if of_cluster(read(EtcdBackups, folder=folder)):
        host.noop("there is a backup of this cluster")
        return
    changes.record(Change(subject="backup of etcd", new=f"the first one, in {folder}"))
    yield StringCommand(PROGRAM, "first")
