"""What is known of packages on a host, whichever program manages them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.fact_output import Fields


@dataclass(frozen=True)
class PackageState:
    """Installed versions by package name, and which packages are held."""

    versions: dict[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()


class AnyPackages(Framed[PackageState]):
    """What is installed and held of some packages, whoever tells it."""

    abstract = True
    default = PackageState

    @classmethod
    @override
    def merged(
        cls, asked: Sequence[Mapping[str, Any]]
    ) -> tuple[type[Framed[PackageState]], dict[str, Any]]:
        names = dict.fromkeys(name for item in asked for name in item["packages"])
        return cls, {"packages": list(names)}

    @classmethod
    @override
    def part(cls, whole: PackageState, asked: Mapping[str, Any]) -> PackageState:
        names = asked["packages"]
        return PackageState(
            {name: version for name, version in whole.versions.items() if name in names},
            tuple(name for name in whole.holds if name in names),
        )


@dataclass(frozen=True)
class RepositoryState:
    """A configured repository.

    + text: of its file; "" when there is none
    + key_sha256: digest of its key file; "" when there is none
    + fingerprints: primary keys in that file; not read where the digest is enough
    + duplicates: other files that name the same URL
    """

    text: str = ""
    key_sha256: str = ""
    fingerprints: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()


# prints the fingerprints of the primary keys in a key file, one a line
FINGERPRINTS = (
    "gpg --homedir /run/gpuboot --no-permission-warning --batch --show-keys --with-colons {path} "
    '2>/dev/null | awk -F : \'$1 == "pub" {{ p = 1 }} $1 == "fpr" && p {{ print $10; p = 0 }}\''
)


class Repository(Framed[RepositoryState]):
    """One repository's file and key, and files of others that name its URL."""

    default = RepositoryState

    @override
    def command(
        self, path: str, key: str, url: str, others: Iterable[str] = (), by_digest: bool = False
    ) -> str:
        """`others`: shell patterns of the files that may name the URL as well; `by_digest`: the
        key is known by its digest, so that gpg need not start."""
        path, key = shlex.quote(path), shlex.quote(key)
        command = (
            f"if test -e {path}; then sed 's/^/text /' {path}; fi; "
            f"if test -e {key}; then sha256sum {key} | sed 's/ .*//; s/^/sha256 /'"
        )
        if not by_digest:
            command += (
                "; if command -v gpg >/dev/null; then mkdir -p -m 0755 /run/gpuboot; "
                f"{FINGERPRINTS.format(path=key)} | sed 's/^/fpr /'; fi"
            )
        command += "; fi"
        if patterns := " ".join(others):
            command += (
                f"; grep -lsF -- {shlex.quote(url)} {patterns} | "
                f"grep -vxF {path} | sed 's/^/duplicate /'"
            )
        return command

    @override
    def process(self, output: list[str]) -> RepositoryState:
        values = Fields(output, separator=" ", last=None)
        text = "".join(f"{line}\n" for line in values.raw("text"))
        return RepositoryState(
            text, values.first("sha256"), tuple(values.all("fpr")), tuple(values.all("duplicate"))
        )
