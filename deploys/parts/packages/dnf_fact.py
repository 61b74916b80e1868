"""What dnf 4 and rpm know on a host. Holds are those of dnf's versionlock plugin."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from deploys.engine.framed import Framed
from deploys.parts.packages.fact import AnyPackages, PackageState
from gpuboot.hosts.fact_output import Fields
from gpuboot.preflight.package_problems import AvailableVersion

LOCKS = "/etc/dnf/plugins/versionlock.list"
# kubelet-0:1.36.6-150500.1.1.*
_LOCK = re.compile(r"(?P<name>.+)-(?:\d+:)?(?P<version>[^-]+)-[^-]+")


class Packages(AnyPackages):
    """The installed versions of some packages, and all holds, in one command.

    A name may have a version behind it, as rpm allows: kernel-devel-5.14.0-570.el9.x86_64.
    """

    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        query = "rpm -q --qf '%{VERSION}-%{RELEASE}\\n'"
        return (
            f'for p in {names}; do if v=$({query} "$p" 2>/dev/null); then '
            'echo "installed $p $(echo "$v" | tail -n 1)"; fi; done; '
            f"if test -e {LOCKS}; then sed '/^[#!]/d; /^$/d; s/^/lock /' {LOCKS}; fi"
        )

    def process(self, output: list[str]) -> PackageState:
        values = Fields(output, separator=" ", last=None)
        locks = [_LOCK.fullmatch(item) for item in values.all("lock")]
        return PackageState(
            values.pairs("installed"),
            tuple(dict.fromkeys(lock["name"] for lock in locks if lock)),
        )


class AvailableVersions(Framed[list[AvailableVersion]]):
    """The versions of some packages that gpuboot's repositories have. Reads no network."""

    default = list

    def command(self, packages: Iterable[str]) -> str:
        names = " ".join(shlex.quote(name) for name in packages)
        return (
            "dnf -q -C repoquery --disablerepo='*' --enablerepo='gpuboot-*' --showduplicates "
            f"--qf '%{{repoid}} %{{name}} %{{version}}-%{{release}}' {names} 2>/dev/null | "
            "while read -r repo package; do echo "
            '"$package $(sed -n \'s/^baseurl=//p\' "/etc/yum.repos.d/$repo.repo")"; done'
        )

    def process(self, output: list[str]) -> list[AvailableVersion]:
        return [AvailableVersion(*line.split()) for line in output if len(line.split()) == 3]


@dataclass(frozen=True)
class DriverPin:
    """What keeps NVIDIA's driver at a version.

    + stream: the enabled stream of the module nvidia-driver; "" for none
    + locked: versions that driver packages are locked to
    """

    stream: str = ""
    locked: tuple[str, ...] = ()


class PinnedDriver(Framed[DriverPin]):
    """The driver's module stream and version locks."""

    default = DriverPin

    def command(self, module: str) -> str:
        """`module`: the dnf module that the driver belongs to."""
        file = shlex.quote(f"/etc/dnf/modules.d/{module}.module")
        return (
            f"if test -e {file}; then sed -n 's/^stream *= */stream /p' {file}; fi; "
            f"if test -e {LOCKS}; then "
            f"sed -nE '/^(kmod-)?nvidia-(driver|open|open-dkms|latest-dkms)-[0-9]+:/s/^/lock /p' "
            f"{LOCKS}; fi"
        )

    def process(self, output: list[str]) -> DriverPin:
        values = Fields(output, separator=" ", last=None)
        locks = [_LOCK.fullmatch(item) for item in values.all("lock")]
        versions = sorted({lock["version"] for lock in locks if lock})
        return DriverPin(values.first("stream"), tuple(versions))
