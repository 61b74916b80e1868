"""What apt and dpkg know on a host."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.hosts.preflight_packages import Offer


@dataclass(frozen=True)
class PackageState:
    """Installed versions by package name, and which packages are held."""

    versions: dict[str, str] = field(default_factory=dict)
    holds: tuple[str, ...] = ()


class Packages(Framed[PackageState]):
    """The installed versions of some packages, and all holds, in one command."""

    default = PackageState

    @override
    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        # dpkg-query exits 1 when one of the packages is unknown: that is an answer, not an error
        return (
            "dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' "
            f"{names} 2>/dev/null; apt-mark showhold | sed 's/^/hold /'"
        )

    @override
    def process(self, output: list[str]) -> PackageState:
        words = [line.split() for line in output]
        return PackageState(
            {item[1]: item[2] for item in words if len(item) == 3 and item[0] == "installed"},
            tuple(item[1] for item in words if item[0] == "hold"),
        )


class Offers(Framed[list[Offer]]):
    """The versions of some packages that apt's indexes have, and where. Reads no network."""

    default = list

    @override
    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        return f"if command -v apt-cache >/dev/null; then apt-cache madison {names} 2>&1; fi"

    @override
    def process(self, output: list[str]) -> list[Offer]:
        # kubelet | 1.36.6-1.1 | https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
        rows = [[part.strip() for part in line.split("|")] for line in output]
        return [
            Offer(row[0], row[1], row[2].split()[0])
            for row in rows
            if len(row) == 3 and row[2].endswith("Packages")
        ]


@dataclass(frozen=True)
class RepositoryState:
    """A configured repository.

    + source: the text of its deb822 file; "" when there is none
    + key_sha256: digest of its key file; "" when there is none
    + fingerprints: primary keys in that file
    + conflicts: other source files that name the same URL
    """

    source: str = ""
    key_sha256: str = ""
    fingerprints: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


# prints the fingerprints of the primary keys in a key file, one a line
FINGERPRINTS = (
    "gpg --homedir /run/gpuboot --no-permission-warning --batch --show-keys --with-colons {path} "
    '2>/dev/null | awk -F : \'$1 == "pub" {{ p = 1 }} $1 == "fpr" && p {{ print $10; p = 0 }}\''
)


class Repository(Framed[RepositoryState]):
    """One repository's source file and key, and files of others that name its URL."""

    default = RepositoryState

    @override
    def command(self, source: str, key: str, url: str) -> str:
        source, key = shlex.quote(source), shlex.quote(key)
        return (
            f"if test -e {source}; then sed 's/^/source /' {source}; fi; "
            f"if test -e {key}; then sha256sum {key} | sed 's/ .*//; s/^/sha256 /'; "
            "if command -v gpg >/dev/null; then mkdir -p -m 0755 /run/gpuboot; "
            f"{FINGERPRINTS.format(path=key)} | sed 's/^/fpr /'; fi; fi; "
            f"grep -lsF -- {shlex.quote(url)} /etc/apt/sources.list /etc/apt/sources.list.d/* | "
            f"grep -vxF {source} | sed 's/^/conflict /'"
        )

    @override
    def process(self, output: list[str]) -> RepositoryState:
        def of(kind: str) -> list[str]:
            prefix = f"{kind} "
            return [line.removeprefix(prefix) for line in output if line.startswith(prefix)]

        source = "".join(f"{line}\n" for line in of("source"))
        return RepositoryState(
            source, "".join(of("sha256")), tuple(of("fpr")), tuple(of("conflict"))
        )
