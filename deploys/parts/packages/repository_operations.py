"""Package repositories with pinned keys.

pyinfra's own operations take a repository's key for right when its file exists.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes, planned_packages
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
    repository: Repository, ca_bundle: str | None = None, curl: SecretStr | None = None
) -> Commands:
    """Ensure a repository is configured once, with the key we know, and its index is read.

    The key is checked, all sources are tried in a private copy, and the index is read first: what
    is wrong leaves the host as it was. An entry of others for the same repository becomes a
    comment: apt refuses two keys for one.

    + repository: see `gpuboot.hosts.repositories`
    + ca_bundle: file on the host that signs the server's certificate; None: the system's
    + curl: curl's configuration for the key's download, for the proxy; shown nowhere
    """
    state = read(facts.Repository, **question(repository, ca_bundle))
    try:
        entries = list(replaced(state.entries, state.own))
    except ValueError as error:
        yield fail(str(error), "give that repository a stanza of its own, then run again")
        return
    edits = [edit for _, edit in entries]
    planned_packages.note_source(planned_packages.Source(repository, tuple(edits)))
    key_matches = _key_matches(repository, state)
    # a publisher gives the same key a later end
    key_extended = key_matches and not repository.key_sha256 and later_key(state)
    if key_matches and not key_extended and state.text == repository.text and not entries:
        host.noop(f"repository {repository.name} is configured")
        return
    changes.record(*_changes(repository, state, key_matches, key_extended, entries))
    key = f"{_WORK}/{repository.name}.asc"
    yield StringCommand(f"mkdir -p {_WORK} && chmod 0755 {_WORK} && rm -f {key}")
    yield _download_key(repository, key, ca_bundle, curl)
    yield _verify_key(repository, key)
    write_it = _write_apt if repository.manager == "apt" else _write_dnf
    yield from write_it(repository, key, edits)


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


def _write_apt(repository: Repository, key: str, edits: Sequence[Edit]) -> Commands:
    path, key_path = repository.path, repository.key_path
    copied_key = apt_private.private_key(key_path)
    yield StringCommand(
        apt_private.prepare({path: repository.text}, edits, keys=[key_path]),
        f"&& install -m 0644 {key} {copied_key}",
    )
    yield apt_sources.check_private_sources(repository.name)
    yield _read_index(repository, apt.read_index(apt_private.private_source(path), repository.name))
    yield apt_sources.changed(path, repository.text, key_path, key, edits)
    yield StringCommand(f"{apt_private.REMOVE} {key}")


def _write_dnf(repository: Repository, key: str, edits: Sequence[Edit]) -> Commands:
    assert not edits, "dnf's other repositories stay"
    folder = repository.key_path.rpartition("/")[0]
    trial = f"{_WORK}/{repository.name}.repo"
    yield write(trial, repository.text.replace(repository.key_path, key))
    yield _read_index(repository, dnf.read_index(trial, repository.name))
    yield StringCommand(
        f"mkdir -p {folder} && chmod 0755 {folder} && install -m 0644 {key}",
        QuoteString(repository.key_path), f"&& rm -f {key} {trial}",
    )  # fmt: skip
    yield write(repository.path, repository.text)


def _key_matches(repository: Repository, state: RepositoryState) -> bool:
    if repository.key_sha256:
        return state.key_sha256 == repository.key_sha256
    return list(state.key_ends) == [repository.fingerprint]


def _changes(
    repository: Repository,
    state: RepositoryState,
    key_matches: bool,
    key_extended: bool,
    entries: Sequence[tuple[Entry, Edit]],
) -> list[Change]:
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
        actual, expected = _FINGERPRINTS.format(path=key), repository.fingerprint
        remedy = "the publisher may have a new key: compare with the publisher's own page first"
    cause = f"{repository.key_url} is not the key that is pinned ({expected}), but "
    message = shell_message("; nothing was installed", remedy)
    return StringCommand(
        f'found=$({actual}); test "$found" =', QuoteString(expected),
        "|| { printf %s%s", QuoteString(cause), '"$found" >&2;', message,
        f"; rm -f {key}; exit 1; }}",
    )  # fmt: skip


def _read_index(repository: Repository, command: str) -> FunctionCommand:
    return with_retries(
        command,
        f"the index of the {repository.name} repository",
        failed=f"the {repository.name} repository {repository.url} cannot be read, or is not "
        "signed with its key; nothing was installed",
        remedy="check the address and who runs the mirror",
    )
