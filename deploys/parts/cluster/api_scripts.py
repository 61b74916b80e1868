"""Facts that ask a cluster's API server, on its leader."""

import shlex
from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from deploys.engine.framed import Framed, script

T = TypeVar("T")


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
    """Such a command, which prints nothing where there is no cluster yet, and no curl to ask it."""
    guard = f"[ -r {shlex.quote(kubeconfig)} ] && command -v curl >/dev/null || exit 0"
    return f"{guard}\n{asking}"


class ApiAnswers(Framed[T]):
    """What the API server answers to `paths`. Read it on the leader."""

    abstract = True
    of_cluster = True
    paths: ClassVar[Sequence[str]]

    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        return command("cluster/answers.sh", kubeconfig, self.paths)
