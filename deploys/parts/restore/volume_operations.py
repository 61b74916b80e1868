"""Volumes that are folders of a node, where etcd is restored: their data are in no snapshot.

The provisioner moves the folder of a deleted volume aside. It is moved back before the API server
starts: the kubelet makes a folder that is missing, empty, as soon as its pod is there again.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api.command import FunctionCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine import run_ending as ending
from deploys.engine.commands import Commands, inform, warn
from deploys.engine.operation import operation
from deploys.parts.storage import folder_volumes as local_volumes
from gpuboot.cluster.etcd_restore import VOLUMES, Source
from gpuboot.cluster.local_volumes import (
    Folder,
    LocalVolume,
    Outlook,
    made_since,
    outlook,
    parse,
    question_lines,
)
from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED

_REMEDY = (
    "copy the data into the folder from a backup of your own, and restart its pods; or delete the "
    "claim and begin empty"
)


@dataclass(frozen=True)
class BackupVolumes:
    """The volumes of a backup, and where their folders are looked for.

    + text: their list as kubectl wrote it; None: the backup has none
    + hosts: Kubernetes name -> inventory name
    + since: after which a folder is none of the backup's
    """

    text: str | None
    hosts: Mapping[str, str]
    since: int

    @property
    def entries(self) -> list[LocalVolume] | None:
        """The list, of folders alone."""
        return None if self.text is None else parse(self.text)


# what nodes had before pods began to run: node -> path -> folder
_before: dict[str, dict[str, Folder]] = {}


def of_backup(state: State, source: Source, hosts: Mapping[str, str]) -> BackupVolumes:
    """The volumes of a backup. + hosts: as in `BackupVolumes`"""
    try:
        if source.host:
            target = state.inventory.get_host(source.host)
            command = f"cat {shlex.quote(f'{source.folder}/{VOLUMES}')}"
            text = "\n".join(local_volumes.read_lines(target, command))
        else:
            text = (Path(source.folder) / VOLUMES).read_text(encoding="utf-8")
        parse(text)
    except (PyinfraError, OSError, ValueError):
        return BackupVolumes(None, hosts, made_since(source.backup.taken_at))
    return BackupVolumes(text, hosts, made_since(source.backup.taken_at))


def confirmation_lines(state: State, volumes: BackupVolumes) -> list[str]:
    """What a person is told of them who has not confirmed yet."""
    entries = volumes.entries or ()
    folders = local_volumes.look(state, entries, volumes.hosts, volumes.since)
    return question_lines(volumes.entries, outlook(entries, folders))


def returned(volumes: BackupVolumes) -> FunctionCommand:
    """The command that moves the folders of deleted volumes back."""
    return FunctionCommand(_returned, (volumes.text, dict(volumes.hosts), volumes.since), {})


def _returned(
    state: State, host: Host, text: str | None, hosts: Mapping[str, str], since: int
) -> bool:
    volumes = BackupVolumes(text, hosts, since)
    own_volumes = [item for item in volumes.entries or () if item.is_local_path]
    _before.clear()
    _before.update(
        local_volumes.look(state, own_volumes, volumes.hosts, volumes.since, mode="back")
    )
    return True


@operation(is_idempotent=False, compared=False)
def claims_checked(volumes: BackupVolumes) -> Commands:
    """Name the claims that came back without their data. Runs on the leader; changes nothing."""
    yield FunctionCommand(_checked, (dict(volumes.hosts), volumes.since), {})


def _checked(state: State, host: Host, hosts: Mapping[str, str], since: int) -> bool:
    try:
        entries = local_volumes.of_cluster(host)
    except (PyinfraError, ValueError) as error:
        line = f"which claims came back without their data is not known: {error}"
        ending.shortfalls[line] = COULD_NOT_TELL
        warn(line)
        return True
    folders = local_volumes.look(state, entries, hosts, since)
    _report_claims(outlook(entries, folders, _before))
    return True


def _report_claims(volume_outlook: Outlook) -> None:
    if volume_outlook.back:
        inform(f"the data of these claims are back: {', '.join(volume_outlook.back)}")
    for claims, message, remedy, code in (
        (volume_outlook.without_data, "came back without its data", _REMEDY, FAILED),
        (
            volume_outlook.unknown,
            "came back, and whether it has its data is not known",
            "bring the node back, and look into the folder of the volume",
            COULD_NOT_TELL,
        ),
    ):
        for claim in claims:
            line = f"claim {claim} {message}"
            warn(line)
            ending.shortfalls[f"{line}\n    remedy: {remedy}"] = code
