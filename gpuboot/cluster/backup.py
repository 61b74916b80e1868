"""Backups of etcd: what they consist of on a control-plane node, and what is known of each."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuboot.cluster import backup_copy
from gpuboot.cluster.local_volumes import FORMAT
from gpuboot.config.settings.backup import Backup as Settings
from gpuboot.config.support import KEY_END_METRIC
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.proxy import ENVIRONMENT_FILE
from gpuboot.templates import render

PROGRAM = "/usr/local/sbin/gpuboot-etcd-backup"
TIMER = "gpuboot-etcd-backup.timer"
SERVICE = "gpuboot-etcd-backup.service"
_UNITS = "/etc/systemd/system"
# a command that waits up to five minutes until the timer's backup has ended, if one is under way
ENDS = (
    f"for i in $(seq 60); do [ $(systemctl show -p SubState --value {SERVICE}) = start ] || break; "
    "sleep 5; done"
)
_CONFIG = "/etc/gpuboot/etcd-backup.conf"
# settings and units on a host; the last one only where copies are made
FILES = (
    _CONFIG,
    f"{_UNITS}/{SERVICE}",
    f"{_UNITS}/{TIMER}",
    f"{_UNITS}/{backup_copy.SERVICE}",
)
# node-exporter reads the files in it, on every node: gpuboot/monitoring/charts/monitoring_values.py
# only root reads it: backups hold every Secret, and the keys of the certificate authorities
FOLDER = "/var/lib/gpuboot/backup"
METRICS_FOLDER = "/var/lib/node_exporter/textfile_collector"
METRIC = "gpuboot_etcd_backup_timestamp_seconds"
COPY_METRIC = "gpuboot_etcd_backup_copy_timestamp_seconds"
_METRIC_FILES = tuple(
    f"{METRICS_FOLDER}/{name}.prom" for name in (METRIC, KEY_END_METRIC, COPY_METRIC)
)
# all that is on a host besides the program and the backups themselves
TRACES = (*FILES, *backup_copy.SECRETS, *_METRIC_FILES)
TRACES_OF_COPIES = (FILES[-1], *backup_copy.SECRETS, _METRIC_FILES[-1])


def program(functions: str) -> str:
    """The program that takes a backup, and copies them: a shell script.

    + functions: those of `deploys/parts/packages/repository_keys.sh`, which it calls
    """
    first_line, text = render("kubernetes/etcd-backup.sh").split("\n", 1)
    return f"{first_line}\n{functions}\n{text}"


def files(settings: Settings, node: str) -> dict[str, str]:
    """Path -> text of the program's settings and its units; secrets are not among them.

    + node: its Kubernetes name
    """
    copies = backup_copy.shell_settings(settings)
    variables = {
        "folder": FOLDER,
        "keep": str(settings.keep),
        "metrics": METRICS_FOLDER,
        "node": node,
        "volumes": FORMAT,
        **copies,
    }
    config = [f"{name}={shlex.quote(value)}\n" for name, value in variables.items()]
    texts = [
        "".join(["# Written by gpuboot\n", *config]),
        render("kubernetes/etcd-backup.service.j2", program=PROGRAM),
        render("kubernetes/etcd-backup.timer.j2", schedule=settings.schedule),
    ]
    if copies:
        unit = "kubernetes/etcd-backup-copy.service.j2"
        texts.append(render(unit, program=PROGRAM, proxy=ENVIRONMENT_FILE))
    return dict(zip(FILES, texts, strict=False))


@dataclass(frozen=True)
class Backup:
    """A backup: a snapshot of etcd and the keys that belong to it.

    + name: of its folder
    + taken_at: seconds since 1970, by the clock of its node
    + reason: `timer`, or before what it was taken
    + kubernetes: version of the API server then, with its v
    + etcd: etcd's image then
    + ca: digest of the cluster's certificate authority
    + revision, keys, size: of the snapshot; size in bytes
    """

    name: str
    taken_at: float
    reason: str = ""
    node: str = ""
    kubernetes: str = ""
    etcd: str = ""
    ca: str = ""
    revision: int = 0
    keys: int = 0
    size: int = 0

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.taken_at, UTC)
        return (
            f"{self.name} of {self.node} ({when:%Y-%m-%d %H:%M:%S} UTC, revision {self.revision}, "
            f"{self.keys} keys, {self.size / 1e6:.1f} MB, Kubernetes {self.kubernetes})"
        )


@dataclass(frozen=True)
class Copied:
    """The newest backup that has a good copy off its node.

    + taken_at: seconds since 1970, by the clock of its node
    + to: where the copy is
    """

    name: str
    taken_at: float
    to: str


@dataclass(frozen=True)
class Backups:
    """What a control-plane node has.

    + entries: the newest first; those of an earlier cluster of this machine as well
    + ca: digest of the present cluster's certificate authority; "" for none
    + failed: why the timer's last one failed, by systemd's word; "" when it did not, or when a good
      one of this cluster came later
    + copied, copy_failed: likewise of copies off the node
    """

    entries: tuple[Backup, ...] = ()
    failed: str = ""
    ca: str = ""
    copied: Copied | None = None
    copy_failed: str = ""


def parse(lines: Iterable[str]) -> Backups:
    """What `deploys/parts/etcd/fact.py` printed. Raises `FactOutputError`, or ValueError."""
    values = Fields(lines)
    entries = sorted(
        (parse_about(*row) for row in values.rows("backup")),
        key=lambda item: item.name,
        reverse=True,
    )
    ca = values.first("ca")
    good = max((item.taken_at for item in entries if item.ca == ca), default=0.0)
    copies = [Copied(name, float(taken_at), to) for name, taken_at, to in values.rows("copied")]
    return Backups(
        tuple(entries),
        _failure(values.rows("result"), good),
        ca,
        copies[0] if copies else None,
        _failure(values.rows("copy"), float(values.first("copied_at") or 0)),
    )


def _failure(ends: list[list[str]], succeeded: float) -> str:
    """Why a unit's last run failed; "" where it did not, or something succeeded afterwards.

    + ends: its result, and when it ended, in seconds since 1970: "" where systemd does not know
    + succeeded: when that was done last
    """
    result, when = [*(ends[0] if ends else []), "", ""][:2]
    outlived = bool(when) and float(when) <= succeeded
    return "" if result == "success" or outlived else result


def of_cluster(backups: Backups) -> list[Backup]:
    """The backups of the present cluster, the newest first."""
    return [item for item in backups.entries if item.ca == backups.ca]


def parse_about(name: str, text: str) -> Backup:
    """What a backup's about.json says. Raises ValueError or LookupError for another file."""
    document = json.loads(text)
    snapshot = document["snapshot"]
    return Backup(
        name=name,
        taken_at=float(document["taken"]),
        reason=document["reason"],
        node=document["node"],
        kubernetes=document["kubernetes"],
        etcd=document["etcd"],
        ca=document["ca"],
        revision=snapshot["revision"],
        keys=snapshot["totalKey"],
        size=snapshot["totalSize"],
    )
