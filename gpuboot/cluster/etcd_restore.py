"""A restore of etcd: from which backup, whether it may be, and what a person is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuboot.cluster.backup import Backup, Backups, of_cluster, parse_about
from gpuboot.config.inventory import Node
from gpuboot.config.problems import Problem
from gpuboot.hosts.fact_output import Fields

FILES = ("about.json", "etcd.db", "pki.tar")
VOLUMES = "volumes"  # missing where the API server did not answer, and in backups of old


@dataclass(frozen=True)
class Member:
    """A control-plane node, as etcd knows it.

    + host: its inventory name; name: in Kubernetes and etcd
    + peer: the URL by which the other members reach it
    """

    host: str
    name: str
    peer: str


@dataclass(frozen=True)
class Source:
    """A backup and where it lies.

    + host: inventory name of its node; "": on the control machine
    + folder: its own
    """

    backup: Backup
    host: str
    folder: str


@dataclass(frozen=True)
class LiveData:
    """The data that etcd has now.

    + revision, keys: as etcd's metrics have them; 0 where it does not answer
    """

    revision: int = 0
    keys: int = 0


def members(nodes: Sequence[Node]) -> list[Member]:
    """The members that etcd will have: all control planes of the inventory, the leader first."""
    controls = [node for node in nodes if node.role == "control_plane"]
    ordered = sorted(controls, key=lambda node: not node.leader)
    return [
        Member(node.host, node.name, f"https://{_bracketed(node.address)}:2380") for node in ordered
    ]


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def initial_cluster(etcd_members: Sequence[Member]) -> str:
    """The value of etcd's option `initial-cluster`."""
    return ",".join(f"{item.name}={item.peer}" for item in etcd_members)


def choose(
    backup_name: str, backups_by_host: Mapping[str, Backups], folder: str, leader: str
) -> Source | Problem:
    """The backup that somebody names, or the newest of the living cluster.

    + backup_name: name of a backup, or its folder on the control machine; "": the newest
    + backups_by_host: what control planes have, by inventory name
    + folder: where they keep it
    + leader: inventory name of the leader

    On an empty machine any cluster's is taken.
    """
    local = Path(backup_name).expanduser()
    if backup_name and "/" in backup_name:
        return _local(local)
    empty = not backups_by_host.get(leader, Backups()).ca
    sources = [
        Source(item, host, f"{folder}/{item.name}")
        for host, backups in backups_by_host.items()
        for item in (backups.entries if empty or backup_name else of_cluster(backups))
        if backup_name in ("", item.name)
    ]
    if sources:
        # the leader's own, where several were taken at the same time
        return max(sources, key=lambda source: (source.backup.name, source.host == leader))
    cause = (
        f"there is no backup {backup_name}" if backup_name else "there is no backup of this cluster"
    )
    names = sorted({item.name for backups in backups_by_host.values() for item in backups.entries})
    remedy = "name one: --data gpuboot_backup=NAME, or its folder on this machine"
    return Problem("", cause, f"{remedy}; there are: {', '.join(names) or 'none on these hosts'}")


def _local(folder: Path) -> Source | Problem:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        cause = f"{folder} is no backup: {', '.join(missing)} is missing there"
        return Problem("", cause, f"name a folder that holds {', '.join(FILES)}")
    backup = parse_about(folder.name, (folder / "about.json").read_text())
    return Source(backup, "", str(folder.resolve()))


def refusal(source: Source, ca: str, kubernetes: str, ready: bool, host: str) -> Problem | None:
    """Why a backup may not be restored there; None when it may.

    + ca: digest of the authority that the leader has; "" for a machine without a cluster
    + kubernetes: version of the lock, without its v
    + ready: kubeadm and its configuration are on that machine
    """
    backup = source.backup
    if ca and backup.ca != ca:
        return Problem(
            host,
            f"{backup.name} is of another cluster: its certificate authority is not the one here",
            "name a backup of this cluster, or reset the machines first (pyinfra INVENTORY "
            "deploys/reset.py --data gpuboot_reset=CLUSTER)",
        )
    if ca:
        return None
    if not ready:
        return Problem(
            host,
            "this machine is in no cluster, and not prepared for one",
            "run deploys/host_layers.py, then this again",
        )
    was = backup.kubernetes.removeprefix("v")
    if was.rpartition(".")[0] != kubernetes.rpartition(".")[0]:
        return Problem(
            host,
            f"{backup.name} is of Kubernetes {was}, the version lock has {kubernetes}",
            f"restore with versions.kubernetes.version = {was}, and upgrade afterwards",
        )
    return None


def members_missing(
    etcd_members: Sequence[Member], backups_by_host: Mapping[str, Backups], ca: str
) -> Problem | None:
    """Why not all control planes can be restored together; None when they can.

    One that keeps its data of before would come back as a member of another etcd.

    + backups_by_host: what those have that answer, by inventory name
    + ca: digest of the cluster's authority
    """
    unreachable = [item.host for item in etcd_members if item.host not in backups_by_host]
    if unreachable:
        return Problem(
            unreachable[0],
            f"{', '.join(unreachable)} cannot be reached, and would come back with etcd's data of "
            "before",
            "bring it back; or take it out of the inventory, keep it off, restore, and reset it "
            "(pyinfra INVENTORY deploys/reset.py --limit HOST --data gpuboot_reset=CLUSTER) before "
            "it joins again",
        )
    foreign = [item.host for item in etcd_members if backups_by_host[item.host].ca != ca]
    if foreign:
        return Problem(
            foreign[0],
            f"{', '.join(foreign)}: in group control_plane, and no part of this cluster",
            "take it out of the inventory, restore, put it back and run deploys/site.py: it joins",
        )
    return None


def question(
    cluster: str,
    source: Source,
    live_data: LiveData,
    now: float,
    empty: bool,
    volumes: Sequence[str] = (),
) -> str:
    """What a person is told who has not confirmed yet.

    + now: seconds since 1970, by the leader's clock
    + empty: the machine is in no cluster
    + volumes: lines about claims and their data
    """
    backup = source.backup
    hours, minutes = divmod(max(int(now - backup.taken_at) // 60, 0), 60)
    age = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    lines = [f"this restores the cluster {cluster} from {backup}", f"taken {age} ago"]
    if empty:
        lines.append("on a machine that is in no cluster: it gets the old cluster's keys and data")
    elif live_data.revision:
        lines.append(
            f"etcd is at revision {live_data.revision} with {live_data.keys} keys now: whatever "
            "was made, changed or deleted since then is undone"
        )
    else:
        lines.append("etcd does not answer: what it has now is not known")
    if not empty:
        lines.append(
            "the API does not answer meanwhile, for a minute or two; pods run on. etcd's present "
            "data are kept beside, as /var/lib/etcd.before-…"
        )
    lines += volumes
    lines.append(
        f"    remedy: if that is what you want, name the cluster: --data gpuboot_restore={cluster}"
    )
    return "\n".join(lines)


def parse_living(values: Fields) -> LiveData:
    """Read etcd's live data out of its metrics; 0 revisions and keys where it does not answer."""
    revision, keys = (
        int(float(values.first(f"etcd_debugging_mvcc_{name}") or 0))
        for name in ("current_revision", "keys_total")
    )
    return LiveData(revision, keys)
