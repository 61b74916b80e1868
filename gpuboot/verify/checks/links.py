"""The links of the proof chain, in their order: the table `links.toml`.

Those of `one_file_checks` come from files of their own, and stand behind the link that they name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuboot.config.tables import read_table
from gpuboot.verify.checks.one_file import ClusterCheck, HostCheck, Link, Subject
from gpuboot.verify.checks.one_file_checks import CLUSTER_CHECKS, HOST_CHECKS


def _chain() -> list[Link]:
    return [Link(**link) for link in read_table("verify/checks/links.toml")["links"]]


def _with(chain: Iterable[Link], checks: Iterable[HostCheck | ClusterCheck]) -> Iterator[Link]:
    behind = list(checks)
    for link in chain:
        yield link
        yield from (check.link for check in behind if check.behind == link.name)


TABLE = tuple(_with(_chain(), [*HOST_CHECKS, *CLUSTER_CHECKS]))


def of(*subjects: Subject) -> dict[str, str]:
    """Name -> what is true when it passes, of the links about these subjects."""
    return {link.name: link.passes for link in TABLE if link.subject in subjects}
