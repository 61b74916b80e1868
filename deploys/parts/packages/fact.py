"""What is known of packages on a host, whichever program manages them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploys.engine.framed import Framed, script
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.repository_state import RepositoryState, parse


@dataclass(frozen=True)
class PackageState:
    """Installed versions by package name, and which packages are held."""

    versions: dict[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()


class AnyPackages(Framed[PackageState]):
    """Installed and held packages, whichever package manager tells them."""

    abstract = True
    default = PackageState

    @classmethod
    def merged(
        cls, arguments: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[PackageState]], dict[str, Any]]:
        names = dict.fromkeys(name for item in arguments for name in item["packages"])
        return cls, {"packages": list(names)}

    @classmethod
    def part(cls, combined: PackageState, arguments: Mapping[str, Any]) -> PackageState:
        names = arguments["packages"]
        return PackageState(
            {name: version for name, version in combined.versions.items() if name in names},
            tuple(name for name in combined.holds if name in names),
        )


KEYS = script("packages/repository_keys.sh")


class Repository(Framed[RepositoryState]):
    """A repository's file and key, and entries of others for its server."""

    default = RepositoryState

    def command(
        self,
        path: str,
        key: str,
        key_url: str,
        server: str = "",
        text: str = "",
        ca: str = "",
        by_digest: bool = False,
    ) -> str:
        """The whole script and its arguments.

        + path, key: the repository's files on a host
        + key_url, ca: where its key is, and who signs that server's certificate
        + server, text: the host in its address and the text of its file, where apt's other sources
          matter
        + by_digest: the key is known by its digest, so that gpg need not start
        """
        return KEYS + script(
            "packages/fact.sh",
            path=path,
            key=key,
            digest="yes" if by_digest else "",
            text=text,
            server=server,
            key_url=key_url,
            ca=ca,
        )

    def process(self, output: list[str]) -> RepositoryState:
        return parse(Fields(output))
