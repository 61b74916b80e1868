"""Which packages a set of packages needs: its closure under Depends and Pre-Depends.

Recommends are left out, as gpuboot installs without them. Every package that is needed is there,
also what each distribution installs anyway, since nobody knows how small a host's system is.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from gpuboot.mirror.packages import Alternatives, Index, Package, Relation, provided


@dataclass(frozen=True)
class PackageRequest:
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

    requirement: str
    needed_by: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Closure:
    """+ packages: sorted by name; more than one version of some, where they are asked for"""

    packages: tuple[Package, ...]
    missing: tuple[Missing, ...]


def closure(
    index: Index, requests: Iterable[PackageRequest], installed: Iterable[Package] = ()
) -> Closure:
    """The packages that are wanted, and all that they need.

    + installed: what hosts have already; it is left out, but for newer ones of what is wanted

    Of alternatives the one that is chosen or installed already, else the first that there is. Where
    that needs what nobody has, others are tried; when none is left, it tells what lacked at first.
    """
    roots, installed_packages = list(requests), list(installed)
    broken: set[Package] = set()
    first: Closure | None = None
    while True:
        result, incomplete = _attempt(index, roots, installed_packages, broken)
        first = first or result
        if any(not entry.needed_by and not entry.optional for entry in result.missing):
            return first
        if not incomplete:
            return result
        broken |= incomplete


def _attempt(
    index: Index,
    requests: Sequence[PackageRequest],
    installed: Sequence[Package],
    broken: Set[Package],
) -> tuple[Closure, set[Package]]:
    """A closure without the broken packages, and those in it that lack something."""
    selection = _Selection(installed)
    missing: dict[Missing, None] = {}
    incomplete: set[Package] = set()
    queue: deque[Package] = deque()
    for request in requests:
        candidates = [
            candidate
            for candidate in index.candidates(request.name, request.pattern)
            if candidate not in broken
        ]
        if not candidates and not request.pattern and selection.satisfies(Relation(request.name)):
            continue
        if not candidates:
            missing[Missing(str(request), optional=request.optional)] = None
        elif selection.add(candidates[0]):
            queue.append(candidates[0])
    while queue:
        package = queue.popleft()
        for group in package.depends:
            if any(selection.satisfies(relation) for relation in group):
                continue
            found_one = _first_candidate(index, group, broken)
            if found_one is None:
                text = " | ".join(map(str, group))
                missing[Missing(text, f"{package.name} {package.version}")] = None
                incomplete.add(package)
            elif selection.add(found_one):
                queue.append(found_one)
    return Closure(selection.sorted(), tuple(missing)), incomplete


def _first_candidate(index: Index, group: Alternatives, broken: Set[Package]) -> Package | None:
    matches = (
        package
        for relation in group
        for package in index.satisfying(relation)
        if package not in broken
    )
    return next(matches, None)


class _Selection:
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
        for relation in package.provides:
            self._provided[relation.name].append(relation.version)

    def satisfies(self, relation: Relation) -> bool:
        return any(
            relation.allows(own_version) for own_version in self._versions.get(relation.name, ())
        ) or any(provided(relation, version) for version in self._provided.get(relation.name, ()))

    def sorted(self) -> tuple[Package, ...]:
        return tuple(self._packages[key] for key in sorted(self._packages))
