"""etcd of a cluster is restored from a backup, on all control planes at once."""

from __future__ import annotations

import base64
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import host

from deploys.lib import changes, remote
from deploys.lib.commands import Commands, failure, inform, report_failure
from deploys.lib.connections import reach
from deploys.lib.etcd import wait_for_etcd
from deploys.lib.operation import operation
from deploys.operations import kubeadm
from gpuboot.kubernetes.restore import FILES, Member, Source, initial_cluster
from gpuboot.plan import Change, Effect
from gpuboot.templates import render

_CHUNK = 3 << 20
_PARTS = "kube-apiserver kube-controller-manager kube-scheduler"
_AGAIN = "run deploys/restore.py again with the same backup: it begins anew"


@dataclass(frozen=True)
class Fresh:
    """How an empty machine becomes the leader of the restored cluster: see `kubeadm.initialized`.

    + digest, kubelet: of the configuration that kubeadm is given
    """

    digest: str
    kubelet: str


@operation(compared=False)
def restored(
    source: Source, members: Sequence[Member], folder: str, fresh: Fresh | None = None
) -> Commands:
    """Restore etcd's data on all its members, from one backup. Runs on the leader.

    Everything is unpacked before anything is stopped; the data of before stay beside.

    + members: the leader first
    + folder: where control planes keep backups: the others get this one from the leader
    + fresh: for a leader that is in no cluster; its only member
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    note = "the API does not answer meanwhile; pods run on"
    changes.record(
        Change(subject="etcd's data", old="of now", new=str(source.backup)),
        Effect(kind="restart", target="control plane", local=True, note=note),
    )
    place = f"{folder}/{source.backup.name}"
    yield FunctionCommand(_distributed, (source, members, place), {})
    if fresh:
        yield _each(members, f"keys {shlex.quote(place)}", "keys are not in place")
    image = source.backup.etcd if fresh else ""
    yield FunctionCommand(_unpacked, (members, place, image), {})
    yield _each(members, "stop", "etcd and the API server are not stopped")
    yield _each(members, f"swap {stamp}", "the data are not exchanged")
    if fresh:
        yield _initialized(fresh)
        return
    yield _each(members, "start etcd", "etcd is not started")
    yield FunctionCommand(wait_for_etcd, ([item.host for item in members], 0), {})
    yield _each(members, f"start {_PARTS}", "the control plane is not started")


@operation(compared=False)
def kubelets_restarted(hosts: Sequence[str]) -> Commands:
    """Restart the kubelets, so that none goes by what it has seen before. Runs on the leader.

    + hosts: inventory names; those that cannot be reached are passed over
    """
    yield FunctionCommand(_restarted, (list(hosts),), {})


def _restarted(state: State, host: Host, hosts: Sequence[str]) -> bool:
    def restart() -> None:
        for name in hosts:
            target = state.inventory.get_host(name)
            if reach(target):
                remote.run(target, "systemctl restart kubelet")

    return _told(host, "a kubelet is not restarted: ", restart)


def _initialized(fresh: Fresh) -> StringCommand:
    """`kubeadm init` on data that are there. Without the mark of one that a run may reset."""
    return StringCommand(
        f"kubeadm init --skip-token-print --config {kubeadm.CONFIG}",
        "--ignore-preflight-errors=DirAvailable--var-lib-etcd",
        f"&& {kubeadm.note(fresh.digest)} && {kubeadm.note_kubelet(fresh.kubelet)}",
        "&& install -D -m 0600 /etc/kubernetes/admin.conf /root/.kube/config",
    )


def _step(text: str) -> str:
    script = render("kubernetes/etcd-restore.sh")
    return f"sh -c {shlex.quote(script)} gpuboot-etcd-restore {text}"


def _told(host: Host, what: str, do: Callable[[], None]) -> bool:
    try:
        do()
    except (PyinfraError, OSError) as error:
        return report_failure(host, failure(f"{what}{_said(error)}", _AGAIN))
    return True


def _said(error: Exception) -> str:
    """Without the script, which the text of the error begins with."""
    return str(error).rpartition("gpuboot-etcd-restore ")[2]


def _each(members: Sequence[Member], step: str, failed: str) -> FunctionCommand:
    """A step of the script, on every member."""
    return FunctionCommand(_on_each, (list(members), step, failed), {})


def _on_each(state: State, host: Host, members: Sequence[Member], step: str, failed: str) -> bool:
    def do() -> None:
        for item in members:
            remote.run(state.inventory.get_host(item.host), _step(step))

    return _told(host, f"{failed}: ", do)


def _unpacked(state: State, host: Host, members: Sequence[Member], place: str, image: str) -> bool:
    cluster = initial_cluster(members)

    def unpack() -> None:
        for item in members:
            arguments = (image, place, item.name, item.peer, cluster)
            step = f"unpack {' '.join(map(shlex.quote, arguments))}"
            said = remote.run(state.inventory.get_host(item.host), _step(step))
            inform(f"{item.name}: {said.splitlines()[-1] if said else 'unpacked'}")

    return _told(host, "the backup is not unpacked, and nothing is changed: ", unpack)


def _distributed(
    state: State, host: Host, source: Source, members: Sequence[Member], place: str
) -> bool:
    """Every member has the backup, where it keeps its own."""

    def copy() -> None:
        for item in members:
            target = state.inventory.get_host(item.host)
            if item.host != source.host and not _has(target, place):
                inform(f"copying {source.backup.name} to {item.name}")
                _copy(state, source, target, place)

    return _told(host, "the backup is not on all control planes: ", copy)


def _has(target: Host, place: str) -> bool:
    return remote.run(target, f"ls {shlex.quote(place)} 2>/dev/null || :").split() == [*FILES]


def _copy(state: State, source: Source, target: Host, place: str) -> None:
    """What is secret goes by standard output and input alone."""
    part = shlex.quote(f"{place.rpartition('/')[0]}/.new-copy")
    remote.run(target, f"rm -rf {part} && (umask 077 && mkdir -p {part})")
    for name in FILES:
        file = f"{part}/{name}"
        remote.run(target, f"umask 077 && : >{file}")
        for chunk in _chunks(state, source, name):
            remote.run(target, f"base64 -d >>{file}", stdin=chunk)
    remote.run(target, f"mv -T {part} {shlex.quote(place)} && sync -f {shlex.quote(place)}")


def _chunks(state: State, source: Source, name: str) -> Iterator[str]:
    """A file of a backup, in base64."""
    path = f"{source.folder}/{name}"
    if not source.host:
        with Path(path).open("rb") as file:
            while data := file.read(_CHUNK):
                yield base64.encodebytes(data).decode()
        return
    origin, place = state.inventory.get_host(source.host), 0
    while text := remote.run(
        origin, f"dd if={shlex.quote(path)} bs={_CHUNK} skip={place} count=1 status=none | base64"
    ):
        yield f"{text}\n"
        place += 1


def reached(nodes: Sequence[str]) -> list[str]:
    """Those of the hosts that answer."""
    return [name for name in nodes if reach(host.state.inventory.get_host(name))]
