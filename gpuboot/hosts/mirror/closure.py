"""Which packages a set of packages needs: its closure under Depends and Pre-Depends.

Recommends are left out, as gpuboot installs without them. Every package that is needed is there,
also what each distribution installs anyway, since nobody knows how small a host's system is.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from gpuboot.hosts.mirror.packages import Alternatives, Index, Package, Relation, provided


@dataclass(frozen=True)
class Wanted:
    """A package that hosts install.

    + pattern: of its version, e.g. `1.36.6-*`; "" for any
    + optional: some hosts need it, and not every repository has it
    """

    name: str
    pattern: str = ""
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name}={self.pattern}" if self.pattern else self.name


@dataclass(frozen=True)
class Missing:
    """What no repository has. + needed_by: package that needs it; "" for what hosts install"""

    what: str
    needed_by: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Closure:
    """+ packages: sorted by name; more than one version of some, where they are asked for"""

    packages: tuple[Package, ...]
    missing: tuple[Missing, ...]


def closure(index: Index, wanted: Iterable[Wanted], installed: Iterable[Package] = ()) -> Closure:
    """The packages that are wanted, and all that they need.

    + installed: what hosts have already; it is left out, but for newer ones of what is wanted

    Of alternatives the one that is chosen or installed already, else the first that there is. Where
    that needs what nobody has, others are tried; when none is left, it tells what lacked at first.
    """
    roots, there = list(wanted), list(installed)
    broken: set[Package] = set()
    first: Closure | None = None
    while True:
        found, lacking = _attempt(index, roots, there, broken)
        first = first or found
        if any(not one.needed_by and not one.optional for one in found.missing):
            return first
        if not lacking:
            return found
        broken |= lacking


def _attempt(
    index: Index, wanted: Sequence[Wanted], installed: Sequence[Package], broken: Set[Package]
) -> tuple[Closure, set[Package]]:
    """A closure without the broken packages, and those in it that lack something."""
    chosen = _Chosen(installed)
    missing: dict[Missing, None] = {}
    lacking: set[Package] = set()
    queue: deque[Package] = deque()
    for one in wanted:
        found = [it for it in index.candidates(one.name, one.pattern) if it not in broken]
        if not found and not one.pattern and chosen.satisfies(Relation(one.name)):
            continue
        if not found:
            missing[Missing(str(one), optional=one.optional)] = None
        elif chosen.add(found[0]):
            queue.append(found[0])
    while queue:
        package = queue.popleft()
        for group in package.depends:
            if any(chosen.satisfies(relation) for relation in group):
                continue
            found_one = _first(index, group, broken)
            if found_one is None:
                text = " | ".join(map(str, group))
                missing[Missing(text, f"{package.name} {package.version}")] = None
                lacking.add(package)
            elif chosen.add(found_one):
                queue.append(found_one)
    return Closure(chosen.sorted(), tuple(missing)), lacking


def _first(index: Index, group: Alternatives, broken: Set[Package]) -> Package | None:
    found = (one for relation in group for one in index.satisfying(relation) if one not in broken)
    return next(found, None)


class _Chosen:
    """The packages of a closure as it grows."""

    def __init__(self, installed: Iterable[Package]) -> None:
        self._packages: dict[tuple[str, str], Package] = {}
        self._versions: dict[str, list[str]] = defaultdict(list)
        self._provided: dict[str, list[str]] = defaultdict(list)
        for package in installed:
            self._know(package)

    def add(self, package: Package) -> bool:
        """Whether it is a new one."""
        key = (package.name, package.version)
        if key in self._packages:
            return False
        self._packages[key] = package
        self._know(package)
        return True

    def _know(self, package: Package) -> None:
        self._versions[package.name].append(package.version)
        for given in package.provides:
            self._provided[given.name].append(given.version)

    def satisfies(self, wanted: Relation) -> bool:
        return any(wanted.allows(one) for one in self._versions.get(wanted.name, ())) or any(
            provided(wanted, version) for version in self._provided.get(wanted.name, ())
        )

    def sorted(self) -> tuple[Package, ...]:
        return tuple(self._packages[key] for key in sorted(self._packages))
