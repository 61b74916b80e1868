"""Folders of deleted volumes, which the local-path provisioner has moved aside on a node."""

import shlex
from dataclasses import dataclass

from deploys.engine.framed import Framed
from gpuboot.cluster.local_path import expire
from gpuboot.hosts.fact_output import Fields

# a tree of millions of files takes minutes
_SCRIPT = """\
cd {folder}/.removed 2>/dev/null || {{ printf 'end\\tok\\n'; exit 0; }}
for folder in *; do [ ! -d "$folder" ] || printf 'folder\\t%s\\n' "$folder"; done
{expire}
size=$(timeout 10 du -skx . 2>/dev/null) && printf 'size\\t%s\\n' "${{size%%[!0-9]*}}"
printf 'end\\tok\\n'
"""


@dataclass(frozen=True)
class Removed:
    """What lies aside.

    + folders: names; expired: those of them that have been there for long enough
    + size_kib: of all; None: counting takes too long
    """

    folders: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    size_kib: int | None = None


class RemovedVolumes(Framed[Removed]):
    """The folders of deleted volumes on this host."""

    default = Removed

    def command(self, folder: str, days: int) -> str:
        """`folder`: where local-path keeps volumes; `days`: how long deleted ones are kept."""
        expired_listing = expire(days, "printf 'expired\\t%s\\n' \"$folder\"")
        return _SCRIPT.format(folder=shlex.quote(folder), expire=expired_listing)

    def process(self, output: list[str]) -> Removed:
        values = Fields(output)
        size = values.first("size")
        return Removed(
            tuple(values.all("folder")), tuple(values.all("expired")), int(size) if size else None
        )
