"""The apt repositories of a mirror: what of the publishers' is needed, and indices of our own."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.settings.mirror import Archive
from gpuboot.hosts import repositories
from gpuboot.hosts.platforms import Platform
from gpuboot.mirror import layout, release, signing, upstream_apt
from gpuboot.mirror import requirements as wanted
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.closure import Closure, closure
from gpuboot.mirror.content import Item, Say, make_item
from gpuboot.mirror.layout import AptFolder
from gpuboot.mirror.manifest import File
from gpuboot.mirror.packages import BadIndexError, Index, Package, installed
from gpuboot.mirror.requirements import Site
from gpuboot.mirror.upstream_apt import Source

_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"
_ORIGIN = "gpuboot mirror"


@dataclass(frozen=True)
class PackageSelection:
    """What one platform and architecture gets of one repository."""

    folder: AptFolder
    architecture: str
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class AptContent:
    """+ selections: by repository; items: the packages' files; notes: what a person should know"""

    selections: tuple[PackageSelection, ...]
    items: tuple[Item, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def contents(client: Client, site: Site, say: Say) -> AptContent:
    """Read the publishers' repositories and choose what hosts need. Raises `FetchError`."""
    selections: list[PackageSelection] = []
    items: list[Item] = []
    problems: list[Problem] = []
    notes: list[str] = []
    mirror = site.settings.mirror
    for name in mirror.platforms:
        platform = wanted.platform(name)
        for architecture in mirror.architectures:
            reader = _Reader(client, site, platform, architecture)
            say(f"apt: reading the repositories of {platform.name}, {architecture}")
            packages = reader.read()
            index = Index(packages, wanted.pins(site))
            installed = _installed(mirror.installed.get(name))
            package_closure = closure(
                index, wanted.packages(site, platform, architecture), installed
            )
            selections += reader.split(package_closure)
            try:
                items += reader.items(package_closure)
            except BadIndexError as error:
                raise FetchError(str(error), "ask who runs that repository") from None
            more_problems, more_notes = _describe_missing(
                package_closure, bool(reader.archives), name, architecture
            )
            problems += more_problems
            notes += more_notes
    return AptContent(tuple(selections), tuple(items), tuple(problems), tuple(notes))


def _describe_missing(
    package_closure: Closure, with_archives: bool, platform: str, architecture: str
) -> tuple[list[Problem], list[str]]:
    """What it means that no repository has something."""
    scope = f"{platform}, {architecture}"
    problems: list[Problem] = []
    notes: list[str] = []
    required_missing = [entry for entry in package_closure.missing if not entry.optional]
    for entry in package_closure.missing:
        if entry.optional:
            notes.append(
                f"{scope}: no repository has {entry.requirement}, which only some hosts need"
            )
    if required_missing and not with_archives:
        names = ", ".join(
            sorted({entry.requirement for entry in required_missing if not entry.needed_by})
        )
        notes.append(
            f"{scope}: without the distribution's own packages ({names} and what these and the "
            "others need), since mirror.archives names no repository of them: the hosts need a "
            "mirror of their distribution from elsewhere"
        )
        return problems, notes
    needed_by: dict[str, list[str]] = {}
    for entry in required_missing:
        needed_by.setdefault(entry.requirement, []).append(entry.needed_by or "every host")
    for package, by in sorted(needed_by.items()):
        cause = f"{scope}: no repository has {package}, needed by {', '.join(sorted(set(by)))}"
        problems.append(Problem("", cause, _MISSING_REMEDY))
    return problems, notes


_MISSING_REMEDY = (
    "name the suite or component that has it in mirror.archives, or correct the version in "
    "settings.versions; what hosts have already is told by mirror.installed"
)


def _installed(path: str | None) -> list[Package]:
    if path is None:
        return []
    try:
        return installed(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        cause = f"mirror.installed: {error}"
        raise FetchError(cause, "copy /var/lib/dpkg/status of a host there") from None


class _Reader:
    """The repositories of one platform and architecture."""

    def __init__(self, client: Client, site: Site, platform: Platform, architecture: str) -> None:
        self._client, self._site, self._platform = client, site, platform
        self._architecture = architecture
        self._urls: dict[str, str] = {}
        self._folders: dict[str, AptFolder] = {}
        self.archives = [
            (archive, suite)
            for archive in site.settings.mirror.archives
            for suite in archive.suites
            if suite.partition("-")[0] == platform.codename
        ]

    def read(self) -> list[Package]:
        return [package for source in self._sources() for package in self._packages(source)]

    def _packages(self, source: Source) -> list[Package]:
        self._urls[source.name] = source.url
        return upstream_apt.read(self._client, source, self._architecture)

    def _sources(self) -> Iterator[Source]:
        minor, machine = self._site.lock.kubernetes.minor, wanted.machine(self._architecture)
        from_there = sources(self._site.settings)
        for name in wanted.repositories(self._site):
            repository = repositories.repository(name, self._platform, machine, minor, from_there)
            folder = layout.apt_folder(name, self._platform, machine, minor)
            key = upstream_apt.key_of(
                self._client, repository.key_url, repository.fingerprint, repository.key_sha256
            )
            self._folders[name] = folder
            yield Source(name, repository.url.rstrip("/"), key, folder.suite, folder.component)
        for archive, suite in self.archives:
            yield from self._of_archive(archive, suite)

    def _of_archive(self, archive: Archive, suite: str) -> Iterator[Source]:
        ring = archive.keyring or _KEYRING.format(self._platform.id)
        key = upstream_apt.keyring(ring)
        for component in archive.components:
            name = f"{archive.url} {suite} {component}"
            self._folders[name] = layout.distribution_folder(self._platform)
            yield Source(name, archive.url, key, suite, component)

    def split(self, package_closure: Closure) -> list[PackageSelection]:
        """What is chosen, by the mirror's repositories; also of those that nothing is chosen of."""
        grouped: dict[AptFolder, list[Package]] = {
            apt_folder: [] for apt_folder in self._folders.values()
        }
        for package in package_closure.packages:
            grouped[self._folders[package.repository]].append(package)
        return [
            PackageSelection(folder, self._architecture, tuple(packages))
            for folder, packages in grouped.items()
        ]

    def items(self, package_closure: Closure) -> list[Item]:
        return [
            Item(
                File(
                    f"{self._folders[package.repository].path}/{package.filename}",
                    package.sha256,
                    package.size,
                    f"{self._urls[package.repository]}/{quote(package.filename)}",
                    f"apt {self._folders[package.repository].name}",
                )
            )
            for package in package_closure.packages
        ]


def sources(settings: Settings) -> Settings:
    """The settings of who fills the mirror: `mirrors` are where it is filled from."""
    return settings.model_copy(update={"mirrors": settings.mirror.sources})


def indices(selections: Sequence[PackageSelection], key: signing.Home) -> list[Item]:
    """Indices of a mirror's repositories, with the site's signatures and its public key.

    Suites of several architectures have one Release. Raises `SigningError`.
    """
    public, items = key.public(), list[Item]()
    grouped: dict[AptFolder, list[PackageSelection]] = defaultdict(list)
    for selection in selections:
        grouped[selection.folder].append(selection)
    for folder, parts in grouped.items():
        part = f"apt {folder.name}"
        index_texts = _index_texts(folder, parts)
        text = release_text(
            folder, sorted({selection.architecture for selection in parts}), index_texts
        ).encode()
        signed = {
            "Release": text,
            "Release.gpg": key.detached(text),
            "InRelease": key.clearsigned(text),
        }
        for name, content in {**index_texts, **signed}.items():
            items.append(make_item(f"{folder.release}/{name}", content, part))
        items.append(make_item(folder.key_path, public, part))
    return items


def _index_texts(folder: AptFolder, parts: Sequence[PackageSelection]) -> dict[str, bytes]:
    """Index -> its text. One of a flat repository is for all platforms and architectures."""
    grouped: dict[str, dict[str, Package]] = defaultdict(dict)
    for part in parts:
        index = grouped[folder.index(part.architecture)]
        index |= {package.filename: package for package in part.packages}
    return {name: packages_text(packages.values()) for name, packages in grouped.items()}


def packages_text(packages: Iterable[Package]) -> bytes:
    """A `Packages` index of these, each as its publisher has it."""
    return "\n".join(package.text for package in packages).encode()


def release_text(
    folder: AptFolder, architectures: Sequence[str], index_texts: dict[str, bytes]
) -> str:
    """The Release of a repository of the mirror."""
    names = {"Origin": _ORIGIN, "Label": f"{_ORIGIN}: {folder.name}"}
    if folder.suite:
        names |= {"Suite": folder.suite, "Codename": folder.suite, "Components": folder.component}
    names |= {"Date": release.date(), "Architectures": " ".join(architectures)}
    return release.text(names, index_texts)
