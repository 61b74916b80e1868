"""Settings of backups: when snapshots of etcd are taken, how many are kept, and where."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from gpuboot.config.settings.base import Form, Model, Port, Url
from gpuboot.config.settings.secret import LocalFile

# what systemd.time(7) allows there; whether systemd takes it, `systemd-analyze` says on the host
_Calendar = Annotated[
    str,
    Form(
        r"[A-Za-z0-9*/.,:~+_-]+( [A-Za-z0-9*/.,:~+_-]+){0,3}",
        "a time of systemd's OnCalendar=",
        "*-*-* 00/6:00:00",
    ),
]

_RsyncFolder = Annotated[
    str,
    Form(
        r"[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+",
        "USER@HOST:FOLDER with an absolute path",
        "backup@store.example:/srv/etcd/prod",
    ),
]
_Bucket = Annotated[str, Form(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket's name", "etcd-prod")]
_Prefix = Annotated[
    str,
    Form(
        r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*",
        "a path without / at its ends",
        "clusters/prod",
    ),
]
_Word = Annotated[str, Form(r"[A-Za-z0-9][^\s]*", "one word", "us-east-1")]


class Rsync(Model):
    """A folder of another machine, by rsync over SSH; each node has a folder of its own in it.

    The folder has to be there, for this cluster alone. The user may be confined to it by `rrsync`.
    """

    to: _RsyncFolder = Field(description="User, machine and folder.")
    port: Port = Field(22, description="SSH's port there.")
    key: LocalFile = Field(description="Private SSH key of that user, without a passphrase.")
    known_hosts: str = Field(
        description="File on the control machine with that machine's public keys, as `ssh-keyscan` "
        "prints them: no other machine gets a backup.",
    )


class S3(Model):
    """A bucket of S3 or of what speaks its protocol, by rclone; each node has a folder in it.

    rclone is the distribution's package; on Rocky Linux and RHEL it comes from EPEL.
    """

    bucket: _Bucket = Field(description="A bucket that is there.")
    prefix: _Prefix | None = Field(
        None, description="Folder within the bucket, for this cluster alone."
    )
    endpoint: Url | None = Field(None, description="Default: Amazon's, by region.")
    region: _Word = Field("us-east-1", description="Region of the bucket.")
    access_key: _Word = Field(description="ID of the access key.")
    secret_key: LocalFile = Field(description="Secret of the access key.")


class Backup(Model):
    """Snapshots of etcd, which holds all objects of the cluster, on each control-plane node."""

    enabled: bool = Field(
        True,
        description="Take them by a timer, and before each change of Kubernetes: upgrade, other "
        "settings of the control plane, certificates, a control plane's removal.",
    )
    schedule: _Calendar = Field(
        "*-*-* 00/6:00:00",
        description="When the timer takes one, as systemd's `OnCalendar=` has it; each node up to "
        "ten minutes later.",
    )
    keep: int = Field(20, ge=1, description="How many each node keeps; older ones are deleted.")
    max_age_h: int = Field(
        24,
        ge=1,
        description="Verification fails, and an alert fires, when the newest one or its copy off "
        "the node is older, in hours.",
    )
    rsync: Rsync | None = Field(
        None, description="Copy each backup to another machine; instead of `s3`."
    )
    s3: S3 | None = Field(None, description="Copy each backup to a bucket; instead of `rsync`.")
    keep_copies: int = Field(
        60, ge=1, description="How many copies of each node's backups are kept off the node."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.rsync and self.s3:
            raise ValueError("copies backups to one place: take either rsync or s3")
        return self
