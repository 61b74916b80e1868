"""Claims for volumes, and who needs the provisioner that has made them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gpuboot.kubernetes.api_answers import parse_answers
from gpuboot.kubernetes.managed_objects import Object

_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
PATHS = (_CLAIMS, _VOLUMES)


@dataclass(frozen=True)
class Claim:
    """A claim for a volume. + volume: that it is bound to; "" for none yet"""

    namespace: str
    name: str
    size: str
    class_name: str
    volume: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Volume:
    """A volume.

    + claim: `namespace/name` that it is or was bound to; "" for none
    + reclaim: what becomes of it without its claim: `Delete` or `Retain`
    """

    name: str
    class_name: str
    provisioner: str
    claim: str
    reclaim: str = "Delete"


@dataclass(frozen=True)
class Volumes:
    """All claims and volumes. + error: why there is no answer; "" when there is one"""

    error: str = ""
    claims: tuple[Claim, ...] = ()
    volumes: tuple[Volume, ...] = ()


def parse_volumes(lines: Sequence[str]) -> Volumes:
    """What the fact of `PATHS` printed; no volumes where there is no cluster.

    Raises `FactOutputError`.
    """
    if not lines:
        return Volumes()
    answers = parse_answers(lines, PATHS)
    return Volumes(
        answers.error,
        tuple(map(_claim, answers.items(_CLAIMS))),
        tuple(map(_volume, answers.items(_VOLUMES))),
    )


def _claim(item: Object) -> Claim:
    meta, spec = item["metadata"], item["spec"]
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "")
    name = spec.get("storageClassName") or ""
    return Claim(meta["namespace"], meta["name"], size, name, spec.get("volumeName") or "")


def _volume(item: Object) -> Volume:
    meta, spec = item["metadata"], item["spec"]
    claim = spec.get("claimRef") or {}
    return Volume(
        meta["name"],
        spec.get("storageClassName") or "",
        (meta.get("annotations") or {}).get("pv.kubernetes.io/provisioned-by", ""),
        f"{claim['namespace']}/{claim['name']}" if claim else "",
        spec.get("persistentVolumeReclaimPolicy") or "Delete",
    )


def named(volumes: Volumes, namespace: str, names: Iterable[str]) -> list[Claim]:
    """The claims of a namespace whose whole name is like one of these regular expressions."""
    patterns = list(names)
    return [
        claim
        for claim in volumes.claims
        if claim.namespace == namespace and any(re.fullmatch(it, claim.name) for it in patterns)
    ]


def users(
    volumes: Volumes, class_name: str, provisioner: str, without: Collection[str] = ()
) -> list[str]:
    """What needs the provisioner of a StorageClass: claims, and volumes that outlived theirs.

    + without: claims, as `namespace/name`, that are about to go
    """
    bound = {
        item.claim or f"volume {item.name}"
        for item in volumes.volumes
        if provisioner == item.provisioner or class_name == item.class_name
    }
    waiting = {str(claim) for claim in volumes.claims if claim.class_name == class_name}
    return sorted((bound | waiting) - {*without})
