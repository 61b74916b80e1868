"""What of the cluster is missing: names alone are asked for, and compared with what must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from gpuboot.cluster.api import Cluster, ClusterError
from gpuboot.cluster.managed_objects import KINDS, Key
from gpuboot.diagnose import paths
from gpuboot.monitoring import components

Released = Mapping[str, Sequence[Key] | None]
# how the API server tells lists without what the objects hold
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_RELEASED, _NAMES = "Helm releases", "names of "


@dataclass(frozen=True)
class Members:
    """What there must be. + released: reads what its Helm releases consist of"""

    desired: components.Expected = field(default_factory=components.Expected)
    released: Callable[[], Released] = dict


def questions(cluster: Cluster, members: Members) -> dict[str, Callable[[], Any]]:
    """What has to be read, by names that tell a person what could not be."""
    if not members.desired.objects:
        return {}
    names = {
        f"{_NAMES}{resource.plural}": partial(_names, cluster, resource.path)
        for resource in KINDS.values()
    }
    return {_RELEASED: members.released, **names}


def _names(cluster: Cluster, path: str) -> set[tuple[str, str]] | None:
    try:
        items = json.loads(cluster.get(path, form=_METADATA)).get("items") or ()
    except ClusterError as error:
        if error.status == 404:
            return None
        raise
    return {(item["metadata"].get("namespace") or "", item["metadata"]["name"]) for item in items}


def missing(answers: MutableMapping[str, Any], members: Members) -> dict[str, Any]:
    """What is missing by these answers, which are taken out of them, as JSON."""
    released = answers.pop(_RELEASED, {})
    names: dict[str, set[tuple[str, str]] | None] = {
        kind: answers.pop(key)
        for kind, resource in KINDS.items()
        if (key := f"{_NAMES}{resource.plural}") in answers
    }
    if paths.PODS in answers:
        metas = [item["metadata"] for item in answers[paths.PODS].get("items", ())]
        names["Pod"] = {(meta["namespace"], meta["name"]) for meta in metas}
    return asdict(components.missing(members.desired, released, names))
