"""The objects that gpuboot keeps in the cluster."""

from __future__ import annotations

from typing_extensions import override

from deploys.facts import api
from deploys.facts.framed import Framed
from gpuboot.kubernetes.manifests import OWNED_PATHS, OwnedObjects, parse_owned


class Owned(Framed[OwnedObjects]):
    """Kind, place and digest of every object with our label, by one command on the leader."""

    of_cluster = True

    @staticmethod
    @override
    def default() -> OwnedObjects:
        return OwnedObjects(error="there is no answer")

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return api.command("cluster.sh", kubeconfig, OWNED_PATHS.values(), api.METADATA)

    @override
    def process(self, output: list[str]) -> OwnedObjects:
        return parse_owned(output)
