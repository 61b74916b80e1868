"""Facts that ask a cluster's API server, on its leader."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable
from importlib import resources

# how the API server tells lists without what the objects hold
METADATA = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def command(script: str, kubeconfig: str, paths: Iterable[str], form: str = "") -> str:
    """A script that asks the API server.

    + script: its file below deploys/parts/
    + kubeconfig: path of the credentials on the leader
    + paths: what is asked, as the server knows them
    + form: of the answers: `METADATA`; "": whole objects
    """
    quoted_paths = " ".join(shlex.quote(path) for path in paths)
    head = f"KUBECONFIG={shlex.quote(kubeconfig)} as={shlex.quote(form)}\nset -- {quoted_paths}"
    return "\n".join([head, _text("cluster/api.sh"), _text(script)])


def where_there_is_one(kubeconfig: str, asking: str) -> str:
    """Such a command, which prints nothing where there is no cluster yet, and no curl to ask it."""
    guard = f"[ -r {shlex.quote(kubeconfig)} ] && command -v curl >/dev/null || exit 0"
    return f"{guard}\n{asking}"


@functools.cache
def _text(script: str) -> str:
    return resources.files("deploys.parts").joinpath(script).read_text()
