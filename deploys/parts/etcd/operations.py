"""Backups of etcd on a control-plane node: their program and timer, and one before a change."""

from collections.abc import Mapping

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.answers import foresee, read
from deploys.engine.commands import Commands, failure, shell_failure, warn
from deploys.engine.operation import operation
from deploys.parts.cluster.fact import Kubeadm
from deploys.parts.etcd.fact import EtcdBackups
from deploys.parts.files import operations as files
from deploys.parts.files.fact import Files
from deploys.parts.units import operations as units
from deploys.parts.units.fact import Units
from gpuboot.cluster import backup_copy
from gpuboot.cluster.backup import PROGRAM, TIMER, TRACES, TRACES_OF_COPIES, of_cluster
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.plan import Change

_REMEDY = (
    "see that etcd answers (`crictl ps -a --name etcd`) and the disk has room, and run again; to "
    "go on without a backup: backup.enabled = False"
)

_COPY_FAILS = (
    f"see `journalctl -u {backup_copy.SERVICE}` there, and run again; the backups on the node are "
    "as they were"
)
# a start alone would wait for the next try of one that has failed
_COPY = (
    f"case $(systemctl show -p SubState --value {backup_copy.SERVICE}) in "
    f"auto-restart*) systemctl stop {backup_copy.SERVICE} ;; esac; "
    f"systemctl start {backup_copy.SERVICE}"
)


def before(change: str) -> StringCommand:
    """The command that takes a backup before a change of Kubernetes, and fails without one.

    The program is there where backups are switched on; on other hosts nothing is done.

    + change: one word, the reason in the backup's name
    """
    failed = shell_failure(f"no backup of etcd could be taken before this: {change}", _REMEDY)
    return StringCommand(f"test ! -x {PROGRAM} || {PROGRAM} {change} ||", failed)


@operation()
def scheduled(
    program: str, contents: Mapping[str, str], secrets: Mapping[str, SecretStr | str]
) -> Commands:
    """Ensure that the program that takes backups is there, and the timer that calls it.

    + program: its text; "": backups are switched off, and nothing of it stays but the backups
    + contents: its other files, as `gpuboot.cluster.backup.files` gives them
    + secrets: as `gpuboot.cluster.backup_copy.secrets` gives them; {}: no copies off the node
    """
    if not program:
        yield from _removed()
        return
    copies = backup_copy.SECRETS if secrets else TRACES_OF_COPIES
    obsolete = [path for path in copies if path not in secrets]
    path_groups: tuple[list[str], ...] = ([PROGRAM], [*contents, *obsolete], list(secrets))
    foresee(
        [
            *((host, Files, {"paths": paths}) for paths in path_groups if paths),
            (host, Units, {"units": [TIMER]}),
        ]
    )
    yield from files.present._inner({PROGRAM: program}, mode="755")
    if secrets:
        yield from files.secret._inner(secrets)
    changed = yield from files.of_units(contents, absent=obsolete)
    yield from units.ensured([TIMER])
    if changed:
        yield StringCommand("systemctl restart", TIMER)


def _removed() -> Commands:
    foresee([(host, Units, {"units": [TIMER]}), (host, Files, {"paths": [PROGRAM, *TRACES]})])
    if TIMER in read(Units, units=[TIMER]):
        yield StringCommand("systemctl disable --now", TIMER)
    yield from files.present._inner({}, absent=[PROGRAM, *TRACES])


@operation()
def first(folder: str) -> Commands:
    """Ensure that there is a backup, and none has failed since: the timer's next may be hours away.

    + folder: where they are kept
    """
    foresee([(host, Kubeadm, {"socket": SOCKET}), (host, EtcdBackups, {"folder": folder})])
    state = read(Kubeadm, socket=SOCKET)
    if "manifests/kube-apiserver.yaml" not in state.files or state.started:
        host.noop("no control plane runs here yet")
        return
    backups = read(EtcdBackups, folder=folder)
    own_backups = of_cluster(backups)
    if own_backups and not backups.failed:
        host.noop("there is a backup of this cluster")
        return
    old = f"failed ({backups.failed})" if own_backups else None
    new = f"another try, in {folder}" if own_backups else f"the first one, in {folder}"
    changes.record(Change(subject="backup of etcd", old=old, new=new))
    yield FunctionCommand(_retry, (), {}) if own_backups else StringCommand(PROGRAM, "first")


def _retry(state: State, host: Host) -> bool:
    """A try that fails stops nothing, since there is a backup: the run says so."""
    try:
        remote.run(host, f"{PROGRAM} retry")
    except remote.RemoteError as error:
        warn(failure(f"no backup of etcd can be taken: {error}", _REMEDY))
    return True


@operation()
def copied(folder: str, target: str) -> Commands:
    """Ensure that copies off the node are made, and that the last attempt did not fail.

    A copy that fails stops nothing: the run says so, and the proof fails.

    + folder: where backups are kept
    + target: where the copies go, as `gpuboot.cluster.backup_copy.target` has it
    """
    backups = read(EtcdBackups, folder=folder)
    is_copied = backups.copied is not None and backups.copied.to == target
    if is_copied and not backups.copy_failed:
        host.noop(f"backups are copied to {target}")
        return
    if not backups.entries and not host.state.is_executing:
        host.noop("there is no backup yet")
        return
    old = f"failed ({backups.copy_failed})" if backups.copy_failed else None
    changes.record(Change(subject="copy of etcd's backups off the node", old=old, new=target))
    yield FunctionCommand(_copy, (target,), {})


def _copy(state: State, host: Host, target: str) -> bool:
    try:
        remote.run(host, _COPY)
    except remote.RemoteError:
        log = remote.run(host, f"journalctl -n 5 --no-pager -o cat -u {backup_copy.SERVICE}")
        warn(failure(f"the backups of etcd are not copied to {target}:\n{log}", _COPY_FAILS))
    return True
