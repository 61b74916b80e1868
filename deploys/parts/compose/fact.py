"""A compose project as it stands on a host."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from deploys.engine.framed import Framed, script
from gpuboot.hosts.fact_output import Fields


@dataclass(frozen=True)
class ComposeState:
    """What was found.

    + absent: no dockerd answers
    + files: path below the folder -> permissions (octal), owner's uid, SHA-256
    + folders: path -> permissions, owner's uid
    + written_files: paths that earlier runs wrote
    + applied: service -> digest of the files that it has read
    + hashes: service -> what compose makes of it now
    + containers: service -> states (`running`, …) and hashes they were made with
    """

    absent: bool = True
    files: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    folders: dict[str, tuple[str, int]] = field(default_factory=dict)
    written_files: tuple[str, ...] = ()
    applied: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    containers: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


class Compose(Framed[ComposeState]):
    """Files, applied digests and containers of a compose project."""

    default = ComposeState

    def command(self, folder: str, files: Sequence[str], folders: Sequence[str]) -> str:
        lists = {"files": "\n".join(files), "folders": "\n".join(folders)}
        return script("compose/fact.sh", folder=folder, **lists)

    def process(self, output: list[str]) -> ComposeState:
        values = Fields(output)
        files, folders = {}, {}
        for line in values.all("file"):
            mode, owner, digest, path = line.split(" ", 3)
            files[path] = (mode, int(owner), digest)
        for line in values.all("folder"):
            mode, owner, path = line.split(" ", 2)
            folders[path] = (mode, int(owner))
        containers: dict[str, list[tuple[str, str]]] = {}
        for service, status, digest in values.words("container", 3):
            containers.setdefault(service, []).append((status, digest))
        return ComposeState(
            "absent" in values,
            files,
            folders,
            tuple(values.all("written")),
            values.pairs("applied"),
            values.pairs("hash"),
            containers,
        )
