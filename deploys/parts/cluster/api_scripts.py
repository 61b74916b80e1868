"""Facts that ask a cluster's API server, on its leader."""

import shlex
from collections.abc import Iterable

from deploys.engine.framed import script


def command(path: str, kubeconfig: str, paths: Iterable[str]) -> str:
    """A script that asks the API server.

    + path: of the script, below deploys/parts/
    + kubeconfig: path of the credentials on the leader
    + paths: what is asked, as the server knows them
    """
    quoted_paths = " ".join(shlex.quote(path) for path in paths)
    head = f"KUBECONFIG={shlex.quote(kubeconfig)} as=''\nset -- {quoted_paths}"
    return "\n".join([head, script("cluster/api.sh"), script(path)])


def where_there_is_one(kubeconfig: str, asking: str) -> str:
    """The command `asking`, which prints nothing where there is no cluster, or no curl, yet."""
    guard = f"[ -r {shlex.quote(kubeconfig)} ] && command -v curl >/dev/null || exit 0"
    return f"{guard}\n{asking}"
