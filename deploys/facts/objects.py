"""The objects that gpuboot keeps in the cluster."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.kubernetes.manifests import (
    BUILT_IN,
    OPERATORS,
    OWNER,
    OWNER_LABEL,
    OwnedObjects,
    parse_owned,
)

SCRIPT = resources.files("deploys.facts").joinpath("objects.sh").read_text()


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
        given = {
            "KUBECONFIG": kubeconfig,
            "label": f"{OWNER_LABEL}={OWNER}",
            "built_in": ",".join(BUILT_IN.values()),
            "operators": ",".join(OPERATORS.values()),
        }
        return "\n".join([*(f"{k}={shlex.quote(v)}" for k, v in given.items()), SCRIPT])

    @override
    def process(self, output: list[str]) -> OwnedObjects:
        return parse_owned(output)
