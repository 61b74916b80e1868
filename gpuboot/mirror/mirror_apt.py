"""apt in a folder of its own: it checks publishers' signatures and chooses what hosts install."""

import os
import re
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from debian.deb822 import Deb822, PkgRelation

from gpuboot.mirror.client import FetchError

# options of apt.conf(5); each machine's own are left out, so that only the publishers count
_OPTIONS = """Dir "{folder}";
Dir::Etc "{folder}/etc";
Dir::State "{folder}";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}";
Dir::Cache::pkgcache "";
Dir::Log "{folder}";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "5";
Debug::NoLocking "true";
"""
_FOLDERS = ("etc/apt.conf.d", "etc/preferences.d", "lists/partial", "archives/partial")
_REMEDY = (
    "ask who runs that repository; where its key or address is another, name it in mirror.sources "
    "or mirror.archives"
)
# a relation of Depends -> what a version of it is like
_ALLOWED = {">>": "{}+", "<<": "{}~"}


@dataclass(frozen=True)
class Source:
    """An apt repository. + url: without / at its end; suite, component: "" for a flat one

    + key: the public key that signs it
    """

    url: str
    key: bytes
    suite: str = ""
    component: str = ""


@dataclass(frozen=True)
class Package:
    """A package that apt chose. + text: its paragraph in the index of its repository"""

    source: Source
    text: str

    @property
    def fields(self) -> Deb822:
        return Deb822(self.text)


class RefusedError(RuntimeError):
    """apt cannot install what it was asked for; the text has its words."""


class Apt:
    """apt for one platform and architecture. + folder: empty, for apt's files; an absolute path

    + ca_file: PEM file of who signed the servers' certificates; None: the system's
    """

    def __init__(self, folder: Path, architecture: str, ca_file: str | None) -> None:
        self._folder, self._sources = folder, list[Source]()
        for name in _FOLDERS:
            (folder / name).mkdir(parents=True)
        options = _OPTIONS.format(folder=folder, architecture=architecture)
        if ca_file:
            options += f'Acquire::https::CAInfo "{Path(ca_file).expanduser().absolute()}";\n'
        (folder / "apt.conf").write_text(options)
        (folder / "status").touch()

    def update(self, sources: Iterable[Source], pins: Mapping[str, str]) -> None:
        """Read repositories. + pins: pattern of packages -> of the version that is preferred

        Raises `FetchError` where a signature, a digest or a date is wrong.
        """
        etc, stanzas = self._folder / "etc", []
        for number, source in enumerate(sources):
            self._sources.append(source)
            key = etc / f"{number}.{'asc' if source.key.startswith(b'-----BEGIN') else 'gpg'}"
            key.write_bytes(source.key)
            components = f"Components: {source.component}\n" if source.suite else ""
            stanzas.append(
                f"Types: deb\nURIs: {source.url}\nSuites: {source.suite or '/'}\n{components}"
                f"Signed-By: {key}\n"
            )
        (etc / "sources.list.d").mkdir()
        (etc / "sources.list.d/mirror.sources").write_text("\n".join(stanzas))
        (etc / "preferences").write_text(
            "\n".join(
                f"Package: {name}\nPin: version {pattern}\nPin-Priority: 1001\n"
                for name, pattern in pins.items()
            )
        )
        result = self._run("apt-get", "-q", "update")
        if result.returncode != 0:
            raise FetchError(_messages(result), _REMEDY)

    def set_installed(self, status: str) -> None:
        """Set what hosts have installed. + status: text of dpkg's status file"""
        (self._folder / "status").write_text(status)

    def names(self) -> set[str]:
        """Packages that a repository has."""
        return set(self._run("apt-cache", "pkgnames").stdout.split())

    def unmet(self) -> list[str]:
        """What packages need and no repository has, each as a Provides of it would say."""
        lines = self._run("apt-cache", "--important", "unmet").stdout.splitlines()
        groups = [line.partition(":")[2] for line in lines if line.startswith(" ")]
        relations = [
            relation
            for text in groups
            for group in PkgRelation.parse_relations(text)
            for relation in group
        ]
        available = self.names()
        return sorted({_provided(entry) for entry in relations if entry["name"] not in available})

    def packages(self, requests: Sequence[str]) -> list[Package]:
        """What installing these takes, without what hosts have. + requests: `NAME`, `NAME=PATTERN`

        Raises `RefusedError`.
        """
        result = self._run("apt-get", "-q", "--print-uris", "install", *requests)
        if result.returncode != 0:
            raise RefusedError(_messages(result))
        names: dict[str, str] = {}
        for line in result.stdout.splitlines():
            if match := re.fullmatch(r"'(\S+)' (\S+) \d+ .*", line):
                name, version, _ = match[2].rsplit("_", 2)
                names[unquote(match[1]).replace("/./", "/")] = f"{name}={unquote(version)}"
        text = self._run("apt-cache", "show", *names.values()).stdout if names else ""
        paragraphs = [f"{part.strip()}\n" for part in text.split("\n\n") if part.strip()]
        return list(self._of_urls(paragraphs, set(names)))

    def _of_urls(self, paragraphs: Iterable[str], urls: set[str]) -> Iterator[Package]:
        """The packages that are fetched from these addresses, each once."""
        for text in paragraphs:
            filename = Deb822(text)["Filename"].removeprefix("./")
            for source in self._sources:
                url = f"{unquote(source.url)}/{filename}"
                if url in urls:
                    urls.remove(url)
                    yield Package(source, text)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        proxies = {f"{name}_proxy": url for name, url in urllib.request.getproxies().items()}
        config = {"APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C.UTF-8"}
        environment = {**os.environ, **proxies, **config}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _provided(relation: Mapping[str, Any]) -> str:
    """What satisfies a relation, as a package that provides it says so."""
    comparison, version = relation["version"] or ("", "")
    if not comparison:
        return str(relation["name"])
    return f"{relation['name']} (= {_ALLOWED.get(comparison, '{}').format(version)})"


def _messages(result: subprocess.CompletedProcess[str]) -> str:
    """What apt says is wrong: its errors, and packages with what they lack."""
    kinds = ("E: ", "W: GPG error")
    errors = [line[3:] for line in result.stderr.splitlines() if line.startswith(kinds)]
    _, _, unmet = result.stdout.partition("unmet dependencies:\n")
    lines = [line.split() for line in [*unmet.splitlines(), *errors]]
    return "; ".join(" ".join(words) for words in lines)
