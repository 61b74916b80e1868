"""Packages of apt repositories as their `Packages` index has them, and which one is preferred."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath

from debian.deb822 import Deb822, PkgRelation
from debian.debian_support import NativeVersion

_FIELD = r"(?im)^{}:[ \t]*(\S.*?)[ \t]*$"
_NAME, _ARCHITECTURE, _PROVIDES = (
    re.compile(_FIELD.format(name)) for name in ("Package", "Architecture", "Provides")
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STATUS = re.compile(r"(?im)^Status:[ \t]*\w+ ok installed[ \t]*$")
_COMPARISONS = {
    "<<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "=": lambda order: order == 0,
    ">=": lambda order: order >= 0,
    ">>": lambda order: order > 0,
}


class BadIndexError(ValueError):
    """An index of a repository is none, or names files where none may be."""


@dataclass(frozen=True)
class Relation:
    """One alternative of a dependency. + comparison: <<, <=, =, >=, >>; "" for any version"""

    name: str
    comparison: str = ""
    version: str = ""

    def allows(self, version: str) -> bool:
        """Whether a package of this version is meant."""
        if not self.comparison:
            return True
        order = compare(version, self.version)
        return bool(_COMPARISONS[self.comparison](order))

    def __str__(self) -> str:
        return f"{self.name} ({self.comparison} {self.version})" if self.comparison else self.name


Alternatives = tuple[Relation, ...]


def compare(version: str, right: str) -> int:
    """The order of two versions as dpkg has it: below 0, 0 or above 0."""
    first, reference = NativeVersion(version), NativeVersion(right)
    return (first > reference) - (first < reference)


@dataclass(frozen=True)
class Package:
    """One package of one repository.

    + repository: the repository's name
    + text: its paragraph in the index, as it was signed
    """

    repository: str
    text: str = field(repr=False)

    @cached_property
    def _fields(self) -> Deb822:
        return Deb822(self.text)

    @cached_property
    def name(self) -> str:
        match = _NAME.search(self.text)
        if match is None:
            raise BadIndexError("a paragraph of the index names no package")
        return match[1]

    def runs_on(self, architecture: str) -> bool:
        """Whether it is for this architecture: a flat repository has one index for all."""
        match = _ARCHITECTURE.search(self.text)
        return match is not None and match[1] in (architecture, "all")

    @property
    def version(self) -> str:
        return str(self._fields["Version"])

    @property
    def size(self) -> int:
        return int(self._fields["Size"])

    @property
    def sha256(self) -> str:
        digest = str(self._fields.get("SHA256", "")).lower()
        if not _SHA256.fullmatch(digest):
            raise BadIndexError(f"{self.name}: its index has no SHA256 of it")
        return digest

    @property
    def priority(self) -> str:
        return str(self._fields.get("Priority", "optional"))

    @property
    def filename(self) -> str:
        """Its file below the repository's folder. Raises `BadIndexError` for one above it."""
        path = PurePosixPath(self._fields["Filename"])
        if path.is_absolute() or ".." in path.parts:
            raise BadIndexError(f"{self.name}: its file would be {path}, outside of the repository")
        return path.as_posix()

    @property
    def depends(self) -> tuple[Alternatives, ...]:
        """What it needs, each with its alternatives in order."""
        texts = (self._fields.get("Pre-Depends", ""), self._fields.get("Depends", ""))
        return tuple(group for text in texts for group in relations(text))

    @property
    def provides(self) -> tuple[Relation, ...]:
        """Names that it stands for as well, some with a version of their own."""
        match = _PROVIDES.search(self.text)
        return (
            tuple(relation for group in relations(match[1]) for relation in group) if match else ()
        )

    @cached_property
    def _order(self) -> NativeVersion:
        return NativeVersion(self.version)


def relations(text: str) -> tuple[Alternatives, ...]:
    """A field such as Depends: all of these, each by one of its alternatives."""
    if not text.strip():
        return ()
    return tuple(
        tuple(
            Relation(alternative["name"], *(alternative["version"] or ("", "")))
            for alternative in group
        )
        for group in PkgRelation.parse_relations(text)
    )


def parse(repository: str, text: str) -> list[Package]:
    """All packages of a `Packages` index, unread as long as nobody asks for their fields."""
    parts = re.split(r"\n[ \t]*\n", text.strip())
    return [Package(repository, part.strip() + "\n") for part in parts if part.strip()]


def installed(status: str) -> list[Package]:
    """The packages that a dpkg status file has as installed."""
    return [package for package in parse("installed", status) if _STATUS.search(package.text)]


@dataclass(frozen=True)
class Pin:
    """Versions that are preferred to newer ones. + pattern: as in `595.91.07-*`"""

    repository: str
    pattern: str


class Index:
    """All packages that one machine may choose from, the preferred version of each first."""

    def __init__(self, packages: Iterable[Package], pins: Sequence[Pin] = ()) -> None:
        self._pins = pins
        self._by_name: Mapping[str, list[Package]] = defaultdict(list)
        self._providers: Mapping[str, list[tuple[Package, str]]] = defaultdict(list)
        for package in packages:
            self._by_name[package.name].append(package)
            for relation in package.provides:
                self._providers[relation.name].append((package, relation.version))

    def candidates(self, name: str, pattern: str = "") -> list[Package]:
        """The packages of this name, the preferred one first. + pattern: of their version"""
        packages = self._by_name.get(name, [])
        matching = [
            package for package in packages if not pattern or fnmatchcase(package.version, pattern)
        ]
        return sorted(matching, key=self._preference, reverse=True)

    def satisfying(self, relation: Relation) -> Iterator[Package]:
        """What a relation can be satisfied by, as apt prefers it: by name, then who provides it."""
        yield from (
            candidate
            for candidate in self.candidates(relation.name)
            if relation.allows(candidate.version)
        )
        providers = [
            package
            for package, version in self._providers.get(relation.name, [])
            if provided(relation, version)
        ]
        best = {candidate.name: candidate for candidate in sorted(providers, key=self._preference)}
        yield from sorted(
            best.values(), key=lambda candidate: (_rank(candidate.priority), candidate.name)
        )

    def _preference(self, package: Package) -> tuple[bool, NativeVersion]:
        pinned = any(
            package.repository == pin.repository and fnmatchcase(package.version, pin.pattern)
            for pin in self._pins
        )
        return pinned, package._order


def provided(relation: Relation, version: str) -> bool:
    """Whether a name that is provided will do: with a version only for who asks for one.

    + version: of the name that is provided; "" for none (Debian Policy, 7.5)
    """
    return relation.allows(version) if version else not relation.comparison


def _rank(priority: str) -> int:
    order = ("required", "important", "standard", "optional", "extra")
    return order.index(priority) if priority in order else len(order)
