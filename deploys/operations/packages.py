"""Packages as a cluster needs them: pinned keys, exact versions, holds.

pyinfra's own operations take a repository's key for right when its file exists, and know no holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import OperationValueError
from pyinfra.api.host import Host
from pyinfra.context import host

from deploys.facts import apt as apt_facts
from deploys.facts import dnf as dnf_facts
from deploys.facts import packages as facts
from deploys.facts.framed import Framed
from deploys.facts.packages import FINGERPRINTS, PackageState, RepositoryState
from deploys.lib import background, changes, planned_packages
from deploys.lib.answers import read
from deploys.lib.commands import Commands, shell_failure, shell_message
from deploys.lib.download_retries import with_retries
from deploys.lib.operation import operation
from deploys.lib.package_downloads import COMMANDS, indices, install
from deploys.lib.package_manager import PackageManagerCommands
from gpuboot.hosts.platforms import PackageManager
from gpuboot.hosts.repositories import Repository
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change
from gpuboot.plan.packages import package_changes

_WORK = "/run/gpuboot"
_FACTS: Mapping[PackageManager, type[Framed[PackageState]]] = {
    "apt": apt_facts.Packages,
    "dnf": dnf_facts.Packages,
}


@operation()
def repository(
    repository: Repository, ca_bundle: str | None = None, curl: SecretStr | None = None
) -> Commands:
    """Ensure a repository is configured with the key we know, and its index is read.

    The key is checked and the index read first: a wrong key or address leaves the host as it was.

    + repository: see `gpuboot.hosts.repositories`
    + ca_bundle: file on the host that signs the server's certificate; None: the system's
    + curl: curl's configuration for the key's download, for the proxy; shown nowhere
    """
    commands = COMMANDS[repository.manager]
    state = _repository_state(repository, commands)
    key_matches = _key_matches(repository, state)
    if key_matches and state.text == repository.text and not state.duplicates:
        host.noop(f"repository {repository.name} is configured")
        return
    changes.record(*_repository_changes(repository, state, key_matches))
    key = f"{_WORK}/{repository.name}.asc"
    trial = f"{_WORK}/{repository.name}.{repository.path.rpartition('.')[2]}"
    folders = f"{_WORK} {repository.key_path.rpartition('/')[0]}"
    yield StringCommand(f"mkdir -p {folders} && chmod 0755 {folders} && rm -f {key}")
    yield _download_key(repository, key, ca_bundle, curl)
    yield _verify_key(repository, key)
    text = repository.text.replace(repository.key_path, key)
    yield StringCommand("printf", "%s", QuoteString(text), ">", QuoteString(trial))
    yield _read_index(repository, commands.read_index(trial, repository.name))
    for file in state.duplicates:
        yield commands.remove_repository(file, repository.url)
    yield StringCommand(
        f"install -m 0644 {key}", QuoteString(repository.key_path), "&& printf %s",
        QuoteString(repository.text), ">", QuoteString(repository.path), f"&& rm -f {key} {trial}",
    )  # fmt: skip


def _repository_state(repository: Repository, commands: PackageManagerCommands) -> RepositoryState:
    state = read(
        facts.Repository,
        path=repository.path,
        key=repository.key_path,
        url=repository.url,
        others=list(commands.REPOSITORY_FILES),
        by_digest=bool(repository.key_sha256),
    )
    planned_packages.note_source(planned_packages.Source(repository, tuple(state.duplicates)))
    return state


def _key_matches(repository: Repository, state: RepositoryState) -> bool:
    if repository.key_sha256:
        return state.key_sha256 == repository.key_sha256
    return list(state.fingerprints) == [repository.fingerprint]


def _repository_changes(
    repository: Repository, state: RepositoryState, key_matches: bool
) -> list[Change]:
    subject = f"{repository.manager} repository {repository.name}"
    differences = []
    if not key_matches:
        old = state.key_sha256 or ", ".join(state.fingerprints) or None
        new = repository.key_sha256 or repository.fingerprint
        differences.append(Change(subject=subject, field="key", old=old, new=new))
    if state.text != repository.text:
        change = text_change(subject, state.text or None, repository.text, "source")
        differences.append(change)
    return differences + [
        Change(subject=f"file {file}", field=f"entries for {repository.url}", old="present")
        for file in state.duplicates
    ]


def _download_key(
    repository: Repository, target: str, ca_bundle: str | None, config: SecretStr | None
) -> FunctionCommand:
    options: list[str | QuoteString] = ["curl -fsSL --connect-timeout 15"]
    if ca_bundle:
        options += ["--cacert", QuoteString(ca_bundle)]
    if config:
        options.append("--config -")
    failed = shell_failure(
        f"the key of the {repository.name} repository cannot be downloaded from "
        f"{repository.key_url}; nothing was installed",
        "check the address, proxy and ca_bundle",
    )
    command = StringCommand(*options, "-o", target, QuoteString(repository.key_url), "||", failed)
    return with_retries(command, f"the key of the {repository.name} repository", config)


def _verify_key(repository: Repository, key: str) -> StringCommand:
    if repository.key_sha256:
        actual, expected = f"sha256sum {key} | cut -d ' ' -f 1", repository.key_sha256
        remedy = "correct key_sha256 if you trust this key"
    else:
        actual, expected = FINGERPRINTS.format(path=key), repository.fingerprint
        remedy = "the publisher may have a new key: compare with the publisher's own page first"
    cause = f"{repository.key_url} is not the key that is pinned ({expected}), but "
    message = shell_message("; nothing was installed", remedy)
    return StringCommand(
        f'found=$({actual}); test "$found" =', QuoteString(expected),
        "|| { printf %s%s", QuoteString(cause), '"$found" >&2;', message,
        f"; rm -f {key}; exit 1; }}",
    )  # fmt: skip


def _read_index(repository: Repository, command: str) -> FunctionCommand:
    failed = shell_failure(
        f"the {repository.name} repository {repository.url} cannot be read, or is not signed with "
        "its key; nothing was installed",
        "check the address and who runs the mirror",
    )
    read = StringCommand(command, "||", failed)
    return with_retries(read, f"the index of the {repository.name} repository")


@operation()
def finished(manager: PackageManager) -> Commands:
    """Ensure that no installation is half done, e.g. because a run or a machine was cut off.

    While one is, the package manager refuses every other.

    + manager: the program that installs packages
    """
    commands = COMMANDS[manager]
    found: list[tuple[str, str, str]] = read(apt_facts.Unfinished) if manager == "apt" else []
    left = [tuple(row) for row in found]
    lost = {name: version for name, state, version in left if state == "half-installed"}
    command = commands.finish(lost) if left else None
    if command is None:
        host.noop("no installation is half done")
        return
    changes.record(
        *[
            Change(subject=f"installation of {name}", field="state", old=state, new="finished")
            for name, state, _ in left
        ]
    )
    yield with_retries(
        command, "packages", failed=f"{manager} cannot finish an installation that was interrupted"
    )


@operation()
def fetched(versions: Mapping[str, str], manager: PackageManager) -> Commands:
    """Start downloads of packages that are installed later, in the background.

    Whatever goes wrong with them, `installed` downloads what it lacks, and tells what is wrong. On
    hosts whose package manager can do one thing at a time this does nothing.

    + versions, manager: as for `installed`, in the order of the downloads
    """
    state = read(_FACTS[manager], packages=sorted(versions))
    missing = {
        name: version for name, version in versions.items() if not _matches(state, name, version)
    }
    script = COMMANDS[manager].fetch(missing) if missing else None
    if script is None:
        host.noop("nothing is to be downloaded ahead")
        return
    changes.record(
        Change(
            subject="packages of later phases", new=f"{len(missing)} downloaded in the background"
        )
    )
    yield background.started("gpuboot-fetch", "gpuboot: download packages", script)


@operation()
def installed(
    versions: Mapping[str, str],
    manager: PackageManager,
    hold: bool = False,
    available: Sequence[str] = (),
) -> Commands:
    """Ensure packages are installed at exactly these versions.

    The first that installs something on a host in a run has all package indices read.

    + versions: package name -> version, a pattern like `2.3.7-*`, or "" for any version
    + manager: the program that installs them
    + hold: keep the program from changing them in any other way
    + available: packages whose available versions to show when this fails; default: those that
      are to have a version
    """
    if not versions:
        raise OperationValueError("packages: name at least one package")
    commands, names = COMMANDS[manager], sorted(versions)
    state = read(_FACTS[manager], packages=names)
    missing = {name: versions[name] for name in names if not _matches(state, name, versions[name])}
    # installing a held package at another version takes its hold away
    unheld = [name for name in names if name in missing or name not in state.holds] if hold else []
    if not missing and not unheld:
        host.noop(f"packages are installed: {', '.join(names)}")
        return
    planned_packages.note_packages(missing)
    changes.record(*package_changes(state.versions, missing, unheld))
    if missing:
        yield indices(manager)
    held = [name for name in missing if name in state.holds]
    if held and (release := commands.release(held)):
        yield release
    if missing:
        yield install(manager, missing, available)
    if unheld:
        yield commands.hold(unheld)


def question(
    target: Host, packages: Iterable[str], manager: PackageManager
) -> tuple[Host, type[Framed[PackageState]], dict[str, Any]]:
    """What `installed` reads of a host, for `deploys.lib.answers.foresee`."""
    return target, _FACTS[manager], {"packages": sorted(packages)}


def _matches(state: PackageState, name: str, pattern: str) -> bool:
    return name in state.versions and fnmatchcase(state.versions[name], pattern or "*")
