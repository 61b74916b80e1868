"""What a package manager would do with a run's packages, as it said before anything was installed.

Read by `deploys/parts/packages/rehearsal_fact.py`, from `apt-get -s install` with the packages,
versions and options of the run (apt 2.4 to 3.0, apt-pkg/algorithms.cc and
apt-private/private-output.cc).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from gpuboot.config.problems import Problem
from gpuboot.hosts.fact_output import Fields

# Remv moby-engine [24.0.9]     Purg x [1] [y:amd64 on z:amd64]
_REMOVED = re.compile(r"(?:Remv|Purg) (?P<name>\S+) \[(?P<version>[^\]]*)\]")
# Inst kubelet [1.36.7-1.1] (1.36.6-1.1 kubernetes [amd64]) []
_INSTALLED = re.compile(r"Inst (?P<name>\S+) (?:\[(?P<old>[^\]]*)\] )?\((?P<new>\S+)")
_LISTS = {
    "The following held packages will be changed:": "held",
    "The following packages will be DOWNGRADED:": "downgraded",
}
# source packages of NVIDIA's driver: Ubuntu's and Debian's own, and those of NVIDIA's repository
_DRIVER_SOURCES = re.compile(
    r"nvidia-graphics-drivers\b.*|linux-restricted-(modules|signatures)\b.*|fabric-manager-\d+"
    r"|libnvidia-nscq-\d+|nvidia-(open|driver|kernel|modprobe|persistenced|settings|xconfig)\b.*"
    r"|nvidia-(fabricmanager|imex|driver-pinning|firmware)\b.*|cuda-drivers\b.*|cuda-compat\b.*"
)
_DRIVERS = re.compile(r"nvidia-open(-\d+)?|cuda-drivers(-\d+)?")


@dataclass(frozen=True)
class Transaction:
    """A package manager's transaction. Versions by name of package.

    + installed: packages that come or change: the version before ("" for none), and the one to come
    + removed: packages that go
    + downgraded: those of `installed` that get an earlier version
    + held_packages: those of `installed` that change though held
    """

    installed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    downgraded: tuple[str, ...] = ()
    held_packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rehearsal:
    """What a run's packages would change on a host beside themselves.

    + manual: removed packages that a person installed by hand
    + sources: removed packages -> their source package
    + uses: removed packages -> what runs of them: units, services, the kernel
    + error: why it is not known, in the package manager's words; "" where it is
    + is_rejected: the package manager does not install these packages together, or cannot find one
    """

    transaction: Transaction = field(default_factory=Transaction)
    manual: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict)
    uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""
    is_rejected: bool = False

    @property
    def replaces_driver(self) -> bool:
        """Whether the transaction brings the NVIDIA driver that the settings ask for."""
        return any(map(_DRIVERS.fullmatch, self.transaction.installed))

    def is_old_driver(self, name: str) -> bool:
        """Whether a removed package is part of the driver that another one replaces."""
        return self.replaces_driver and bool(_DRIVER_SOURCES.fullmatch(self.sources.get(name, "")))

    def reasons(self, name: str) -> tuple[str, ...]:
        """Why a removed package is missed, as parts of a sentence; nothing where it is not."""
        by_hand = ("installed by hand",) if name in self.manual else ()
        return (*(f"{use} uses it" for use in self.uses.get(name, ())), *by_hand)


def parse_simulation(lines: Iterable[str]) -> Transaction:
    """The transaction that `apt-get -s install` prints, run with LC_ALL=C."""
    installed: dict[str, tuple[str, str]] = {}
    removed: dict[str, str] = {}
    lists: dict[str, list[str]] = {"held": [], "downgraded": []}
    current = ""
    for line in lines:
        if line.startswith("  ") and current:
            lists[current] += line.split()
            continue
        current = _LISTS.get(line.strip(), "")
        if match := _REMOVED.match(line):
            removed[match["name"]] = match["version"]
        elif match := _INSTALLED.match(line):
            installed[match["name"]] = (match["old"] or "", match["new"])
    # a package that is removed and comes back at once is not gone
    finally_removed = {name: version for name, version in removed.items() if name not in installed}
    return Transaction(installed, finally_removed, tuple(lists["downgraded"]), tuple(lists["held"]))


def parse(lines: Iterable[str]) -> Rehearsal:
    """What the fact printed. Raises `FactOutputError` when it did not finish."""
    values = Fields(lines, last="end")
    uses: dict[str, tuple[str, ...]] = {}
    for item in dict.fromkeys(values.all("use")):
        name, _, use = item.partition(" ")
        uses[name] = (*uses.get(name, ()), use)
    return Rehearsal(
        parse_simulation(values.raw("apt")),
        frozenset(values.all("manual")),
        values.pairs("source"),
        uses,
        "; ".join(dict.fromkeys(values.all("error"))),
        "refused" in values,
    )


def missed(rehearsal: Rehearsal, allowed: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Removed packages that somebody would miss -> why. + allowed: names that may go

    The driver that the settings ask for replaces an older one whoever installed it: that is what
    they ask for, and nothing that runs on the old one survives a driver's replacement anyway.
    """
    return {
        name: reasons
        for name in rehearsal.transaction.removed
        if (reasons := rehearsal.reasons(name))
        and name.partition(":")[0] not in allowed
        and not rehearsal.is_old_driver(name)
    }


def problems(
    rehearsals: Mapping[str, Rehearsal], allowed: Collection[str], remove: Mapping[str, str]
) -> list[Problem]:
    """Why a run may not start. + rehearsals: by inventory name; remove: the command that removes"""
    problems = []
    for host, rehearsal in rehearsals.items():
        if rehearsal.is_rejected:
            problems.append(_refusal(host, rehearsal.error))
        elif removals := missed(rehearsal, allowed):
            removal_text = "; ".join(
                f"{name} ({', '.join(reasons)})" for name, reasons in removals.items()
            )
            problems.append(
                Problem(
                    host,
                    f"the packages of this run would remove {removal_text}",
                    f"run `{remove[host]} {' '.join(removals)}` there once nothing needs "
                    f"{'it' if len(removals) == 1 else 'them'}, or let the run do so: "
                    f"preflight.allow_removals = {_format_list(removals)}",
                )
            )
    return problems


def _refusal(host: str, error: str) -> Problem:
    return Problem(
        host,
        f"the package manager cannot install this run's packages: {error}",
        "correct the versions in the settings, or the repositories and held packages of the host; "
        "`apt-get -s install` with the packages it names shows more",
    )


def _format_list(names: Iterable[str]) -> str:
    plain = dict.fromkeys(name.partition(":")[0] for name in names)
    return "[" + ", ".join(f'"{name}"' for name in plain) + "]"


def warnings(rehearsals: Mapping[str, Rehearsal]) -> list[str]:
    """A line for each reason for which it is not known what a run's packages change."""
    hosts: dict[str, list[str]] = {}
    for host, rehearsal in rehearsals.items():
        if rehearsal.error and not rehearsal.is_rejected:
            hosts.setdefault(rehearsal.error, []).append(host)
    return [
        f"{', '.join(names)}: which packages this run removes there is not known: the rehearsal by "
        f"the package manager was not possible: {error}"
        for error, names in hosts.items()
    ]
