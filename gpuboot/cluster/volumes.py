"""Claims for volumes, and who needs the provisioner that has made them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuboot.cluster import stuck
from gpuboot.cluster.api_answers import parse_answers
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.local_path import NAMESPACE, PROVISIONER
from gpuboot.cluster.managed_objects import Object
from gpuboot.cluster.objects import Claim, parse_claim
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck import Stuck

_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
PATHS = (_CLAIMS, _VOLUMES)
# how kubectl lists the pods of a namespace for `parse_users`: a line each
USERS = (
    'jsonpath={range .items[*]}{.metadata.name}{"\\t"}'
    '{.spec.volumes[*].persistentVolumeClaim.claimName}{"\\n"}{end}'
)


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
        tuple(map(parse_claim, answers.items(_CLAIMS))),
        tuple(map(_volume, answers.items(_VOLUMES))),
    )


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


def matching_claims(volumes: Volumes, namespace: str, names: Iterable[str]) -> list[Claim]:
    """The claims of a namespace whose whole name is like one of these regular expressions."""
    patterns = list(names)
    return [
        claim
        for claim in volumes.claims
        if claim.namespace == namespace
        and any(re.fullmatch(pattern, claim.name) for pattern in patterns)
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
    waiting = {str(claim) for claim in volumes.claims if claim.storage_class == class_name}
    return sorted((bound | waiting) - {*without})


def deletion_progress(
    volumes: Volumes, namespace: str, claims: Collection[str], names: Collection[str]
) -> Progress:
    """Whether deleted claims and their volumes are gone. + names: of the volumes

    Volumes that their class retains stay.
    """
    if volumes.error:
        return Progress(False, f"the volumes cannot be read: {volumes.error}")
    leaving_items = [
        str(entry)
        for entry in volumes.claims
        if entry.namespace == namespace and entry.name in claims
    ]
    leaving_items += [
        f"volume {entry.name}"
        for entry in volumes.volumes
        if entry.name in names and entry.reclaim != "Retain"
    ]
    return Progress(
        not leaving_items,
        f"volumes are deleted: {', '.join(leaving_items)}",
        ready=-len(leaving_items),
    )


def parse_users(lines: Iterable[str]) -> dict[str, list[str]]:
    """Claim -> the pods that use it, of the pods that kubectl lists by `USERS`."""
    users: dict[str, list[str]] = {}
    for line in lines:
        pod, _, claims = line.partition("\t")
        for claim in claims.split():
            users.setdefault(claim, []).append(pod)
    return users


def held_up(
    look: Progress,
    users: Mapping[str, Sequence[str]],
    claims: Iterable[str],
    state: ClusterState,
) -> Progress:
    """The progress, with what keeps claims and volumes from being deleted. + look: without that

    + users: see `parse_users`
    + state: with its pod issues
    """
    reasons = [
        Stuck(
            f"claim {claim}",
            f"pod {', '.join(users[claim])} uses it",
            stuck.UNCERTAIN_S,
            "delete what makes that pod",
        )
        for claim in claims
        if claim in users
    ]
    helpers = [item for item in state.pod_issues if item.namespace == NAMESPACE]
    reasons += [reason for item in helpers if (reason := stuck.of_job(item, state))]
    if not any(
        (workload.namespace, workload.name) == (NAMESPACE, PROVISIONER)
        for workload in state.workloads
    ):
        reasons.append(stuck.of_absent(NAMESPACE, PROVISIONER, state, certain=True))
    return replace(look, text="; ".join([look.text, *map(str, reasons)]), stuck=tuple(reasons))


@dataclass(frozen=True)
class NodeVolume:
    """A PersistentVolume that is on one node alone. + claim: namespace/name; "" for none"""

    name: str
    claim: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.claim})" if self.claim else self.name


def of_node(volumes: Iterable[Mapping[str, Any]], node: str) -> Iterator[NodeVolume]:
    """Volumes that only this node has, such as those of local-path."""
    for volume in volumes:
        affinity = volume["spec"].get("nodeAffinity", {}).get("required", {})
        terms = affinity.get("nodeSelectorTerms") or []
        only = [
            item.get("values")
            for term in terms
            for item in term.get("matchExpressions") or []
            if item["key"] == "kubernetes.io/hostname" and item["operator"] == "In"
        ]
        if only and all(values == [node] for values in only):
            claim = volume["spec"].get("claimRef") or {}
            claim_name = f"{claim['namespace']}/{claim['name']}" if claim else ""
            yield NodeVolume(volume["metadata"]["name"], claim_name)
