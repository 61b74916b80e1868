"""Package repositories with pinned keys.

pyinfra's own operations take a repository's key for right when its file exists.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import answers, changes, planned_packages
from deploys.engine.answers import read
from deploys.engine.commands import Commands, fail, shell_failure, shell_message
from deploys.engine.download_retries import with_retries
from deploys.engine.operation import operation
from deploys.parts.files.operations import write
from deploys.parts.packages import apt, apt_private, dnf
from deploys.parts.packages import apt_source_changes as apt_sources
from deploys.parts.packages import fact as facts
from gpuboot.hosts.apt_sources import Edit, Entry, replaced
from gpuboot.hosts.repositories import Repository
from gpuboot.hosts.repository_state import RepositoryState, day, first_end, later_key
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change

_WORK = "/run/gpuboot"
# prints the fingerprints of the primary keys in a key file, one a line; leaves no file behind
_FINGERPRINTS = (
    f"gpg --homedir {_WORK} --no-permission-warning --batch --no-keyring --trust-model always "
    "--show-keys --with-colons {path} 2>/dev/null | "
    'awk -F : \'$1 == "pub" {{ p = 1 }} $1 == "fpr" && p {{ print $10; p = 0 }}\''
)


@operation()
def configured(
    repositories: list[Repository],
    ca_bundle: str | None = None,
    curl: Mapping[str, SecretStr] | None = None,
) -> Commands:
    """Ensure repositories are configured once, with the keys we know, and their indices are read.

    Keys are checked, all sources are tried in a private copy, and the indices are read first: what
    is wrong with one of them leaves the host as it was. An entry of others for the same repository
    becomes a comment: apt refuses two keys for one.

    + repositories: see `gpuboot.hosts.repositories`; those of one package manager
    + ca_bundle: file on the host that signs the servers' certificates; None: the system's
    + curl: curl's configuration for the downloads of keys, for the proxy, by name of the
      repository; shown nowhere
    """
    answers.foresee(
        (host, facts.Repository, dict(question(item, ca_bundle))) for item in repositories
    )
    states = [read(facts.Repository, **question(item, ca_bundle)) for item in repositories]
    try:
        entries = list(_replaced_entries(states))
    except ValueError as error:
        yield fail(str(error), "give that repository a stanza of its own, then run again")
        return
    differences = {}
    for repository, state, replacements in zip(repositories, states, entries, strict=True):
        edits = tuple(edit for _, edit in replacements)
        planned_packages.note_source(planned_packages.Source(repository, edits))
        differences[repository.name] = _changes(repository, state, replacements)
    missing = [repository for repository in repositories if differences[repository.name]]
    if not missing:
        host.noop(f"repositories are configured: {_names(repositories)}")
        return
    changes.record(*[change for items in differences.values() for change in items])
    for repository in missing:
        yield _download_key(repository, ca_bundle, (curl or {}).get(repository.name))
        yield _verify_key(repository)
    write_them = _write_apt if repositories[0].manager == "apt" else _write_dnf
    yield from write_them(missing, [edit for items in entries for _, edit in items])


def question(repository: Repository, ca_bundle: str | None = None) -> Mapping[str, Any]:
    """What the fact `Repository` is asked for one."""
    apt_alone = {
        "server": urlsplit(repository.url).hostname or repository.url,
        "text": repository.text,
    }
    return {
        "path": repository.path,
        "key": repository.key_path,
        "key_url": repository.key_url,
        "ca": ca_bundle or "",
        "by_digest": bool(repository.key_sha256),
        # dnf takes a package from whichever repository has it: two of one address do no harm
        **(apt_alone if repository.manager == "apt" else {}),
    }


def _replaced_entries(states: Sequence[RepositoryState]) -> Iterator[list[tuple[Entry, Edit]]]:
    """Per repository, the entries of others that configure it and what becomes of them.

    A stanza that has several of our repositories is with the first of them, and loses all.
    """
    folders = [folder for state in states for folder in state.own]
    assigned_entries: set[Entry] = set()
    for state in states:
        entries = [entry for entry, _ in replaced(state.entries, state.own)]
        yield list(replaced([entry for entry in entries if entry not in assigned_entries], folders))
        assigned_entries.update(entries)


def _key(repository: Repository) -> str:
    """The file of a key that is not the host's yet."""
    return f"{_WORK}/{repository.name}.asc"


def _names(repositories: Sequence[Repository]) -> str:
    return ", ".join(repository.name for repository in repositories)


def _trial(repositories: Sequence[Repository], keys: Mapping[str, str]) -> str:
    """All repositories as one file. + keys: a key's path on the host -> where it is now"""
    texts = []
    for repository in repositories:
        key = keys[repository.key_path]
        texts.append(repository.text.replace(repository.key_path, key))
    return "\n".join(texts)


def _write_apt(repositories: Sequence[Repository], edits: Sequence[Edit]) -> Commands:
    texts = {repository.path: repository.text for repository in repositories}
    keys = {repository.key_path: _key(repository) for repository in repositories}
    copies = {path: apt_private.private_key(path) for path in keys}
    yield StringCommand(
        apt_private.prepare(texts, edits, keys=list(keys)),
        *[f"&& install -m 0644 {key} {copies[path]}" for path, key in keys.items()],
    )
    yield apt_sources.check_private_sources(_names(repositories))
    trial = f"{_WORK}/trial.sources"
    yield write(trial, _trial(repositories, copies))
    yield _read_indices(repositories, apt.read_indices(trial, ()))
    yield apt_sources.changed(texts, keys, edits)
    yield StringCommand(apt_private.REMOVE, trial, *keys.values())


def _write_dnf(repositories: Sequence[Repository], edits: Sequence[Edit]) -> Commands:
    assert not edits, "dnf's other repositories stay"
    keys = {repository.key_path: _key(repository) for repository in repositories}
    trial = f"{_WORK}/trial.repo"
    yield write(trial, _trial(repositories, keys))
    names = [repository.name for repository in repositories]
    yield _read_indices(repositories, dnf.read_indices(trial, names))
    for repository in repositories:
        folder = repository.key_path.rpartition("/")[0]
        yield StringCommand(
            f"mkdir -p {folder} && chmod 0755 {folder} && install -m 0644 {_key(repository)}",
            QuoteString(repository.key_path), f"&& rm -f {_key(repository)}",
        )  # fmt: skip
        yield write(repository.path, repository.text)
    yield StringCommand(f"rm -f {trial}")


def _key_matches(repository: Repository, state: RepositoryState) -> bool:
    if repository.key_sha256:
        return state.key_sha256 == repository.key_sha256
    return list(state.key_ends) == [repository.fingerprint]


def _changes(
    repository: Repository, state: RepositoryState, entries: Sequence[tuple[Entry, Edit]]
) -> list[Change]:
    """What a repository lacks on the host; nothing where it is as it should be."""
    key_matches = _key_matches(repository, state)
    # a publisher gives the same key a later end
    key_extended = key_matches and not repository.key_sha256 and later_key(state)
    subject = f"{repository.manager} repository {repository.name}"
    differences = []
    if not key_matches:
        old = state.key_sha256 if repository.key_sha256 else ", ".join(state.key_ends)
        new = repository.key_sha256 or repository.fingerprint
        differences.append(Change(subject=subject, field="key", old=old or None, new=new))
    if key_extended:
        old, new = (day(first_end(keys)) for keys in (state.key_ends, state.offered_ends))
        differences.append(Change(subject=subject, field="end of its key", old=old, new=new))
    if state.text != repository.text:
        change = text_change(subject, state.text or None, repository.text, "source")
        differences.append(change)
    return differences + [
        text_change(
            f"file {entry.path}",
            entry.text,
            "".join(f"# {line}\n" for line in entry.text.splitlines()) + edit.text,
            f"lines {entry.first} to {entry.last}",
        )
        for entry, edit in entries
    ]


def _download_key(
    repository: Repository, ca_bundle: str | None, config: SecretStr | None
) -> FunctionCommand:
    key = _key(repository)
    options: list[str | QuoteString] = [
        f"mkdir -p {_WORK} && chmod 0755 {_WORK} && rm -f {key} &&",
        f"curl -fsSL --connect-timeout 15 -o {key}",
    ]
    if ca_bundle:
        options += ["--cacert", QuoteString(ca_bundle)]
    if config:
        options.append("--config -")
    failed = shell_failure(
        f"the key of the {repository.name} repository cannot be downloaded from "
        f"{repository.key_url}; nothing was installed",
        "check the address, proxy and ca_bundle",
    )
    command = StringCommand(*options, QuoteString(repository.key_url), "||", failed)
    return with_retries(command, f"the key of the {repository.name} repository", config)


def _verify_key(repository: Repository) -> StringCommand:
    key = _key(repository)
    if repository.key_sha256:
        actual, expected = f"sha256sum {key} | cut -d ' ' -f 1", repository.key_sha256
        remedy = "correct key_sha256 if you trust this key"
    else:
        actual, expected = _FINGERPRINTS.format(path=key), repository.fingerprint
        remedy = "the publisher may have a new key: compare with the publisher's own page first"
    cause = f"{repository.key_url} is not the key that is pinned ({expected}), but "
    message = shell_message("; nothing was installed", remedy)
    return StringCommand(
        f'found=$({actual}); test "$found" =', QuoteString(expected),
        "|| { printf %s%s", QuoteString(cause), '"$found" >&2;', message,
        f"; rm -f {key}; exit 1; }}",
    )  # fmt: skip


def _read_indices(repositories: Sequence[Repository], command: str) -> FunctionCommand:
    addresses = ", ".join(f"{item.name} ({item.url})" for item in repositories)
    return with_retries(
        command,
        f"the indices of {_names(repositories)}",
        failed=f"a repository cannot be read, or is not signed with its key: {addresses}; nothing "
        "was installed",
        remedy="check the address and who runs the mirror",
    )
