"""Settings of backups: when snapshots of etcd are taken, how many are kept, and where."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpuboot.config.settings.base import Form, Model

# what systemd.time(7) allows there; whether systemd takes it, `systemd-analyze` says on the host
_Calendar = Annotated[
    str,
    Form(
        r"[A-Za-z0-9*/.,:~+_-]+( [A-Za-z0-9*/.,:~+_-]+){0,3}",
        "a time of systemd's OnCalendar=",
        "*-*-* 00/6:00:00",
    ),
]
# it is part of commands and mounts
_Folder = Annotated[
    str,
    Form(
        r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*){2,}",
        "an absolute path of letters, digits, ., _ and -",
        "/var/lib/gpuboot/backup",
    ),
]


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
    folder: _Folder = Field(
        "/var/lib/gpuboot/backup",
        description="Where they are kept. Only root reads them: they hold every Secret, and the "
        "keys of the cluster's certificate authorities.",
    )
    max_age_h: int = Field(
        24, ge=1, description="Verification fails when the newest one is older, in hours."
    )
