"""What apt and dpkg know on a host."""

import shlex
from collections.abc import Iterable

from deploys.engine.framed import Framed
from deploys.parts.packages.fact import AnyPackages, PackageState
from gpuboot.preflight.package_problems import AvailableVersion


class Packages(AnyPackages):
    """The installed versions of some packages, and which of them are held, in one command."""

    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        fields = "${db:Status-Want} ${db:Status-Status} ${Package} ${Version}\\n"
        # dpkg-query exits 1 when one of the packages is unknown: that is an answer, not an error
        return f"dpkg-query -W -f '{fields}' {names} 2>/dev/null || test $? = 1"

    def process(self, output: list[str]) -> PackageState:
        rows = [line.split() for line in output]
        return PackageState(
            {row[2]: row[3] for row in rows if len(row) == 4 and row[1] == "installed"},
            tuple(row[2] for row in rows if row[0] == "hold"),
        )


# states of a package that is whole, or gone, as dpkg(1) calls them
_FINISHED_STATES = r"installed\|config-files\|not-installed"


class Unfinished(Framed[list[tuple[str, str, str]]]):
    """What an installation by dpkg has left half done: name, state and version of packages.

    `dpkg`, interrupted and "": it was killed before it had noted in its database what it did.
    """

    default = list

    def command(self) -> str:
        return (
            # apt refuses to work where this folder has files whose names are numbers
            "ls /var/lib/dpkg/updates 2>/dev/null | grep -qx '[0-9]*' && "
            "printf 'dpkg\\tinterrupted\\t\\n'; if command -v dpkg-query >/dev/null; then "
            "dpkg-query -W -f '${Package}\\t${db:Status-Status}\\t${Version}\\n' | "
            f"grep -v '\t\\({_FINISHED_STATES}\\)\t'; fi; true"
        )

    def process(self, output: list[str]) -> list[tuple[str, str, str]]:
        rows = [line.split("\t") for line in output]
        return [(name, state, version) for name, state, version in rows]


class AvailableVersions(Framed[list[AvailableVersion]]):
    """The versions of some packages that apt's indexes have, and where. Reads no network."""

    default = list

    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        return f"if command -v apt-cache >/dev/null; then apt-cache madison {names} 2>&1; fi"

    def process(self, output: list[str]) -> list[AvailableVersion]:
        # kubelet | 1.36.6-1.1 | https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
        rows = [[part.strip() for part in line.split("|")] for line in output]
        return [
            AvailableVersion(row[0], row[1], row[2].split()[0])
            for row in rows
            if len(row) == 3 and row[2].endswith("Packages")
        ]
