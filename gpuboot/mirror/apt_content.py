"""The apt repositories of a mirror: what of the publishers' is needed, and indices of our own."""

import hashlib
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.settings.mirror import PlatformName
from gpuboot.hosts import repositories
from gpuboot.mirror import mirror_layout, release, signing
from gpuboot.mirror import mirror_requirements as wanted
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.content import Item, Progress, make_item, unique
from gpuboot.mirror.manifest import File
from gpuboot.mirror.mirror_apt import Apt, Package, RefusedError, Source
from gpuboot.mirror.mirror_layout import AptFolder
from gpuboot.mirror.mirror_requirements import PackageRequest, Site

_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"
_ORIGIN = "gpuboot mirror"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ARCHITECTURE = re.compile(r"(?m)^Architecture: (?!all$).*$")
_MISSING_REMEDY = (
    "name the suite or component that has it in mirror.archives, or correct the version in "
    "settings.versions; what hosts have already is told by mirror.installed"
)


@dataclass(frozen=True)
class PackageSelection:
    """What one platform and architecture gets of one repository. + texts: paragraphs, by file"""

    folder: AptFolder
    architecture: str
    texts: dict[str, str]


@dataclass(frozen=True)
class AptContent:
    """+ selections: by repository; items: the packages' files; notes: what a person should know"""

    selections: tuple[PackageSelection, ...]
    items: tuple[Item, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def contents(client: Client, site: Site, progress: Progress) -> AptContent:
    """Read the publishers' repositories and choose what hosts need. Raises `FetchError`."""
    parts: list[AptContent] = []
    mirror = site.settings.mirror
    for name in mirror.platforms:
        for architecture in mirror.architectures:
            progress(f"apt: reading the repositories of {name}, {architecture}")
            with tempfile.TemporaryDirectory(prefix="gpuboot-apt-") as folder:
                apt = Apt(Path(folder), architecture, mirror.sources.ca_bundle)
                parts.append(_Reader(client, site, name, architecture).read(apt))
    return AptContent(
        tuple(selection for part in parts for selection in part.selections),
        tuple(item for part in parts for item in part.items),
        tuple(problem for part in parts for problem in part.problems),
        tuple(note for part in parts for note in part.notes),
    )


class _Reader:
    """The repositories of one platform and architecture."""

    def __init__(self, client: Client, site: Site, name: PlatformName, architecture: str) -> None:
        self._client, self._site = client, site
        self._name, self._platform = name, wanted.platform(name)
        self._architecture = architecture
        self._folders: dict[Source, AptFolder] = {}
        self._scope = f"{name}, {architecture}"

    def read(self, apt: Apt) -> AptContent:
        requests = wanted.packages(self._site, self._platform, self._architecture)
        self._folders = {**self._publishers(), **self._archives()}
        apt.update(self._folders, wanted.pins(self._site, requests))
        status = self._installed()
        notes: list[str] = []
        if set(self._folders.values()).isdisjoint(
            [mirror_layout.distribution_folder(self._platform)]
        ):
            status += f"\n{_distribution(apt.unmet())}"
            names = apt.names()
            absent = [entry for entry in requests if entry.name not in names and not entry.pattern]
            requests = [entry for entry in requests if entry not in absent]
            notes.append(self._without_distribution(absent))
        apt.set_installed(status)
        packages, problems, more_notes = self._packages(apt, requests)
        return AptContent(
            tuple(self._selections(packages)),
            tuple(unique(map(self._item, packages))),
            tuple(problems),
            (*notes, *more_notes),
        )

    def _packages(
        self, apt: Apt, requests: Sequence[PackageRequest]
    ) -> tuple[list[Package], list[Problem], list[str]]:
        """What all hosts install at once, and each thing that only some of them do."""
        problems: list[Problem] = []
        notes: list[str] = []
        packages: list[Package] = []
        try:
            packages += apt.packages([str(entry) for entry in requests if not entry.optional])
        except RefusedError as error:
            problems.append(Problem("", f"{self._scope}: {error}", _MISSING_REMEDY))
        for request in requests:
            if request.optional:
                try:
                    packages += apt.packages([str(request)])
                except RefusedError as error:
                    notes.append(f"{self._scope}: {error}; only some hosts need that")
        return packages, problems, notes

    def _without_distribution(self, absent: Iterable[PackageRequest]) -> str:
        names = ", ".join(sorted(entry.name for entry in absent))
        return (
            f"{self._scope}: without the distribution's own packages ({names} and what these and "
            "the others need), since mirror.archives names no repository of them: the hosts need "
            "a mirror of their distribution from elsewhere"
        )

    def _publishers(self) -> dict[Source, AptFolder]:
        minor, machine = self._site.lock.kubernetes.minor, wanted.machine(self._architecture)
        settings, folders = sources(self._site.settings), {}
        for name in wanted.repositories(self._site):
            repository = repositories.repository(name, self._platform, machine, minor, settings)
            folder = mirror_layout.apt_folder(name, self._platform, machine, minor)
            key = _key(self._client, repository)
            source = Source(repository.url.rstrip("/"), key, folder.suite, folder.component)
            folders[source] = folder
        return folders

    def _archives(self) -> dict[Source, AptFolder]:
        """The distribution's own repositories, where the settings name them."""
        folder = mirror_layout.distribution_folder(self._platform)
        return {
            Source(
                archive.url.rstrip("/"),
                _keyring(archive.keyring or _KEYRING.format(self._platform.id)),
                suite,
                " ".join(archive.components),
            ): folder
            for archive in self._site.settings.mirror.archives
            for suite in archive.suites
            if suite.partition("-")[0] == self._platform.codename
        }

    def _installed(self) -> str:
        """What hosts have, as dpkg's status has it; whatever their architecture."""
        path = self._site.settings.mirror.installed.get(self._name)
        if path is None:
            return ""
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            cause = f"mirror.installed: {error}"
            raise FetchError(cause, "copy /var/lib/dpkg/status of a host there") from None
        return _ARCHITECTURE.sub(f"Architecture: {self._architecture}", text)

    def _selections(self, packages: Iterable[Package]) -> Iterator[PackageSelection]:
        """A selection for each of the mirror's repositories, those without a package included."""
        grouped: dict[AptFolder, dict[str, str]] = {folder: {} for folder in self._folders.values()}
        for package in packages:
            grouped[self._folders[package.source]][_filename(package)] = package.text
        for folder, texts in grouped.items():
            yield PackageSelection(folder, self._architecture, texts)

    def _item(self, package: Package) -> Item:
        fields, filename, folder = package.fields, _filename(package), self._folders[package.source]
        digest = fields.get("SHA256", "").lower()
        if not _SHA256.fullmatch(digest):
            raise FetchError(f"{fields['Package']}: its index has no SHA256 of it", _INDEX_REMEDY)
        return Item(
            File(
                f"{folder.path}/{filename}",
                digest,
                int(fields["Size"]),
                f"{package.source.url}/{quote(filename)}",
                f"apt {folder.name}",
            )
        )


_INDEX_REMEDY = "ask who runs that repository"


def _filename(package: Package) -> str:
    """The file of a package, below the repository's. Raises `FetchError` for one above it."""
    path = PurePosixPath(package.fields["Filename"])
    if path.is_absolute() or ".." in path.parts:
        name = package.fields["Package"]
        raise FetchError(
            f"{name}: its file would be {path}, outside of the repository", _INDEX_REMEDY
        )
    return path.as_posix()


def _distribution(provides: Iterable[str]) -> str:
    """A paragraph of dpkg's status: one package that stands for all of a distribution."""
    return (
        "Package: distribution\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n"
        f"Maintainer: gpuboot\nDescription: what hosts have\nProvides: {', '.join(provides)}\n"
    )


def _key(client: Client, repository: repositories.Repository) -> bytes:
    """A publisher's public key. Raises `FetchError` for another key than the one that is known."""
    content = client.text(repository.key_url)
    if repository.key_sha256:
        expected = f"sha256 {repository.key_sha256}"
        actual = {f"sha256 {hashlib.sha256(content).hexdigest()}"}
    else:
        expected, actual = repository.fingerprint, signing.fingerprints(content)
    if expected not in actual:
        raise FetchError(
            f"the key at {repository.key_url} is another than the one that is known: {expected} "
            f"wanted, {', '.join(sorted(actual)) or 'none'} found",
            "do not trust it; where its publisher has a new key, a new gpuboot knows it; of a "
            "mirror give its digest in mirror.sources.apt",
        )
    return content


def _keyring(path: str) -> bytes:
    """The distribution's public keys. Raises `FetchError`."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise FetchError(
            f"the distribution's key: {error}",
            "install it (apt-get install debian-archive-keyring ubuntu-keyring), or name its file "
            "in mirror.archives[].keyring",
        ) from None


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
    grouped: dict[str, dict[str, str]] = defaultdict(dict)
    for part in parts:
        grouped[folder.index(part.architecture)] |= part.texts
    return {name: "\n".join(texts.values()).encode() for name, texts in grouped.items()}


def release_text(
    folder: AptFolder, architectures: Sequence[str], index_texts: dict[str, bytes]
) -> str:
    """The Release of a repository of the mirror."""
    names = {"Origin": _ORIGIN, "Label": f"{_ORIGIN}: {folder.name}"}
    if folder.suite:
        names |= {"Suite": folder.suite, "Codename": folder.suite, "Components": folder.component}
    names |= {"Date": release.date(), "Architectures": " ".join(architectures)}
    return release.text(names, index_texts)
