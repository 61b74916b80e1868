"""PersistentVolumes that are on one node alone, and go with it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


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
