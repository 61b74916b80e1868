"""etcd of a cluster is restored from a backup, on all control planes at once."""

import base64
import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.engine import changes, remote
from deploys.engine.commands import Commands, failure, inform, report_failure
from deploys.engine.connections import reach
from deploys.engine.operation import operation
from deploys.parts.etcd.members import wait_for_etcd
from deploys.parts.kubeadm import operations as kubeadm
from deploys.parts.restore.volume_operations import BackupVolumes, returned
from gpuboot.cluster.etcd_restore import FILES, VOLUMES, Member, Source, initial_cluster
from gpuboot.plan import Change, Effect
from gpuboot.templates import render

_CHUNK = 3 << 20
_PARTS = "kube-apiserver kube-controller-manager kube-scheduler"
# digests alone, in the order of FILES
_SUMS = f"sha256sum {' '.join(FILES)} 2>/dev/null | cut -d ' ' -f 1"
_RETRY_REMEDY = "run deploys/restore.py again with the same backup: it begins anew"


@dataclass(frozen=True)
class LeaderBootstrap:
    """How an empty machine becomes the leader of the restored cluster: see `kubeadm.initialized`.

    + digest, kubelet: of the configuration that kubeadm is given
    """

    digest: str
    kubelet: str


@operation(is_idempotent=False, compared=False)
def restored(
    source: Source,
    members: list[Member],
    folder: str,
    volumes: BackupVolumes,
    bootstrap: LeaderBootstrap | None = None,
) -> Commands:
    """Restore etcd's data on all its members, from one backup. Runs on the leader.

    Everything is unpacked before anything is stopped; the data of before stay beside.

    + members: the leader first
    + folder: where control planes keep backups: the others get this one from the leader
    + volumes: of the backup; folders of deleted ones are moved back
    + bootstrap: for a leader that is in no cluster; its only member
    """
    note = "the API does not answer meanwhile; pods run on"
    changes.record(
        Change(subject="etcd's data", old="of now", new=str(source.backup)),
        Effect(kind="restart", target="control plane", local=True, note=note),
    )
    place, hosts = f"{folder}/{source.backup.name}", [item.host for item in members]
    yield FunctionCommand(_distributed, (source.host, source.folder, hosts, place), {})
    if bootstrap:
        yield _step_on_members(hosts, f"keys {shlex.quote(place)}", "keys are not in place")
    image, cluster = source.backup.etcd if bootstrap else "", initial_cluster(members)
    steps = {
        item.host: _words("unpack", image, place, item.name, item.peer, cluster) for item in members
    }
    yield FunctionCommand(_unpacked, (steps,), {})
    yield _step_on_members(hosts, "stop", "etcd and the API server are not stopped")
    yield _step_on_members(hosts, "swap", "the data are not exchanged")
    yield returned(volumes)
    if bootstrap:
        yield from _initialized(bootstrap)
        return
    yield _step_on_members(hosts, "start etcd", "etcd is not started")
    yield FunctionCommand(wait_for_etcd, (hosts, 0), {})
    yield _step_on_members(hosts, f"start {_PARTS}", "the control plane is not started")


@operation(is_idempotent=False, compared=False)
def kubelets_restarted(hosts: Sequence[str]) -> Commands:
    """Restart the kubelets, so that none goes by what it has seen before. Runs on the leader.

    + hosts: inventory names; those that cannot be reached are passed over
    """
    if not hosts:
        host.noop("there are no kubelets")
        return
    yield FunctionCommand(_restarted, (list(hosts),), {})


def _restarted(state: State, host: Host, hosts: Sequence[str]) -> bool:
    def restart() -> None:
        for name in hosts:
            target = state.inventory.get_host(name)
            if reach(target):
                remote.run(target, "systemctl restart kubelet")

    return _attempt(host, "a kubelet is not restarted: ", restart)


def _initialized(bootstrap: LeaderBootstrap) -> Commands:
    """Run `kubeadm init` on present data, without the mark by which a later run may reset it."""
    # one that is killed is nobody else's cluster
    yield StringCommand(f"mkdir -p /etc/gpuboot && touch {kubeadm.KUBELET_NOTE}")
    yield StringCommand(
        f"kubeadm init --skip-token-print --config {kubeadm.CONFIG}",
        "--ignore-preflight-errors=DirAvailable--var-lib-etcd",
        f"&& {kubeadm.note(bootstrap.digest)} && {kubeadm.note_kubelet(bootstrap.kubelet)}",
        "&& install -D -m 0600 /etc/kubernetes/admin.conf /root/.kube/config",
    )


def _step(text: str) -> str:
    script = render("kubernetes/etcd-restore.sh")
    return f"sh -c {shlex.quote(script)} gpuboot-etcd-restore {text}"


def _attempt(host: Host, prefix: str, do: Callable[[], None]) -> bool:
    try:
        do()
    except (PyinfraError, OSError) as error:
        return report_failure(host, failure(f"{prefix}{_error_text(error)}", _RETRY_REMEDY))
    return True


def _error_text(error: Exception) -> str:
    """An error's text without the script that it begins with."""
    return str(error).rpartition("gpuboot-etcd-restore ")[2]


def _words(*parts: str) -> str:
    return " ".join(map(shlex.quote, parts))


def _step_on_members(hosts: Sequence[str], step: str, failed: str) -> FunctionCommand:
    """A command that runs a step of the script on every member."""
    return FunctionCommand(_on_each, (list(hosts), step, failed), {})


def _on_each(state: State, host: Host, hosts: Sequence[str], step: str, failed: str) -> bool:
    def do() -> None:
        for name in hosts:
            remote.run(state.inventory.get_host(name), _step(step))

    return _attempt(host, f"{failed}: ", do)


def _unpacked(state: State, host: Host, steps: Mapping[str, str]) -> bool:
    """Unpack the backup on members. + steps: inventory name -> step of the script"""

    def unpack() -> None:
        for name, step in steps.items():
            output = remote.run(state.inventory.get_host(name), _step(step))
            inform(f"{name}: {output.splitlines()[-1] if output else 'unpacked'}")

    return _attempt(host, "the backup is not unpacked, and nothing is changed: ", unpack)


def _distributed(
    state: State, host: Host, origin: str, folder: str, hosts: Sequence[str], place: str
) -> bool:
    """Copy the backup to every member that lacks it, where it keeps its own.

    Two nodes may have taken one in the same second, for the same reason: their names are the same,
    and their contents are not. Members restored from both would be no copies of each other.

    + origin, folder: where it lies: see `Source`
    """

    def copy() -> None:
        digests = _digests(state, origin, folder)
        for name in hosts:
            target = state.inventory.get_host(name)
            sums = remote.run(target, f"cd {shlex.quote(place)} 2>/dev/null && {_SUMS} || :")
            if not sums:
                inform(f"copying {place.rpartition('/')[2]} to {name}")
                _copy(state, origin, folder, target, place)
            elif sums.split() != digests:
                conflict = f"{place} of {name} is another backup of the same name"
                raise PyinfraError(f"{conflict}: give its folder another name there")

    return _attempt(host, "the backup is not on all control planes: ", copy)


def _digests(state: State, origin: str, folder: str) -> list[str]:
    """The digests of a backup's files; nothing where one is missing."""
    if not origin:
        files = [Path(folder) / name for name in FILES]
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    command = f"cd {shlex.quote(folder)} && {_SUMS}"
    return remote.run(state.inventory.get_host(origin), command).split()


def _copy(state: State, origin: str, folder: str, target: Host, place: str) -> None:
    """Copy a backup from host to host; secrets go by standard output and input alone."""
    names = [*FILES, *([VOLUMES] if _lists_volumes(state, origin, folder) else [])]
    part = shlex.quote(f"{place.rpartition('/')[0]}/.new-copy")
    remote.run(target, f"rm -rf {part} && (umask 077 && mkdir -p {part})")
    for name in names:
        file = f"{part}/{name}"
        remote.run(target, f"umask 077 && : >{file}")
        for chunk in _chunks(state, origin, f"{folder}/{name}"):
            remote.run(target, f"base64 -d >>{file}", stdin=chunk)
    remote.run(target, f"mv -T {part} {shlex.quote(place)} && sync -f {shlex.quote(place)}")


def _lists_volumes(state: State, origin: str, folder: str) -> bool:
    path = f"{folder}/{VOLUMES}"
    if not origin:
        return Path(path).is_file()
    command = f"if [ -f {shlex.quote(path)} ]; then echo yes; fi"
    return bool(remote.run(state.inventory.get_host(origin), command))


def _chunks(state: State, origin: str, path: str) -> Iterator[str]:
    """A file of a backup, in base64."""
    if not origin:
        with Path(path).open("rb") as file:
            while data := file.read(_CHUNK):
                yield base64.encodebytes(data).decode()
        return
    target, place = state.inventory.get_host(origin), 0
    while text := remote.run(
        target, f"dd if={shlex.quote(path)} bs={_CHUNK} skip={place} count=1 status=none | base64"
    ):
        yield f"{text}\n"
        place += 1
