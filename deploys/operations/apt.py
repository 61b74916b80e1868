"""apt as a cluster needs it: pinned keys, exact versions, holds, and no change when all is right.

pyinfra's own `apt` operations take a key for right when its file exists, and know no holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pydantic import SecretStr
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.exceptions import OperationValueError
from pyinfra.api.operation import operation
from pyinfra.context import host

from deploys.facts.apt import FINGERPRINTS, Packages, Repository, RepositoryState
from deploys.lib import changes
from deploys.lib.commands import Commands, shell_failure, shell_message
from deploys.lib.download_retries import patiently
from gpuboot.hosts.apt import Source
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change
from gpuboot.plan.packages import package_changes

LOCK_TIMEOUT_S = 600
_WORK = "/run/gpuboot"
_QUIET = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l NEEDRESTART_SUSPEND=1"
_LOCK = f"-o DPkg::Lock::Timeout={LOCK_TIMEOUT_S}"
_INSTALL = (
    f"{_QUIET} apt-get {_LOCK} -o Dpkg::Options::=--force-confdef "
    "-o Dpkg::Options::=--force-confold install -y -q --no-install-recommends "
    "--allow-downgrades --allow-change-held-packages"
)


@operation()
def repository(
    source: Source, ca_bundle: str | None = None, curl: SecretStr | None = None
) -> Commands:
    """Ensure a repository is configured with the key we know, and its index is read.

    The key is checked before anything is put in place, and the index is read with it first, so a
    wrong key or address leaves the host as it was.

    + source: the repository, see `gpuboot.hosts.apt`
    + ca_bundle: file on the host that signs the server's certificate; None: the system's
    + curl: curl's configuration for the key's download, for the proxy; shown nowhere
    """
    state = host.get_fact(Repository, source=source.path, key=source.key_path, url=source.url)
    if source.key_sha256:
        key_right = state.key_sha256 == source.key_sha256
    else:
        key_right = list(state.fingerprints) == [source.fingerprint]
    if key_right and state.source == source.text and not state.conflicts:
        host.noop(f"repository {source.name} is configured")
        return
    changes.record(*_repository_changes(source, state, key_right))
    key, trial = f"{_WORK}/{source.name}.asc", f"{_WORK}/{source.name}.sources"
    yield StringCommand(
        f"mkdir -p {_WORK} /etc/apt/keyrings && chmod 0755 {_WORK} /etc/apt/keyrings && rm -f {key}"
    )
    yield _download(source, key, ca_bundle, curl)
    yield _verify(source, key)
    text = source.text.replace(f"Signed-By: {source.key_path}", f"Signed-By: {key}")
    yield StringCommand("printf", "%s", QuoteString(text), ">", QuoteString(trial))
    read = StringCommand(
        f"apt-get {_LOCK} update -q -o Dir::Etc::sourcelist={trial} -o Dir::Etc::sourceparts=- "
        "-o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any ||",
        shell_failure(
            f"the {source.name} repository {source.url} cannot be read, or is not signed with its "
            "key; nothing was installed",
            "check the address and who runs the mirror",
        ),
    )
    yield patiently(read, f"the index of the {source.name} repository")
    for path in state.conflicts:
        if path == "/etc/apt/sources.list":
            yield StringCommand("sed -i", QuoteString(f"\\|{source.url}|d"), QuoteString(path))
        else:
            yield StringCommand("rm -f", QuoteString(path))
    yield StringCommand(
        f"install -m 0644 {key}", QuoteString(source.key_path), "&& printf %s",
        QuoteString(source.text), ">", QuoteString(source.path), f"&& rm -f {key} {trial}",
    )  # fmt: skip


def _repository_changes(source: Source, state: RepositoryState, key_right: bool) -> list[Change]:
    subject = f"apt repository {source.name}"
    found = []
    if not key_right:
        old = state.key_sha256 or ", ".join(state.fingerprints) or None
        new = source.key_sha256 or source.fingerprint
        found.append(Change(subject=subject, field="key", old=old, new=new))
    if state.source != source.text:
        found.append(text_change(subject, state.source or None, source.text, "source"))
    return found + [
        Change(subject=f"file {path}", field=f"entries for {source.url}", old="present")
        for path in state.conflicts
    ]


def _download(
    source: Source, target: str, ca_bundle: str | None, config: SecretStr | None
) -> FunctionCommand:
    options: list[str | QuoteString] = ["curl -fsSL --connect-timeout 15"]
    if ca_bundle:
        options += ["--cacert", QuoteString(ca_bundle)]
    if config:
        options.append("--config -")
    failed = shell_failure(
        f"the key of the {source.name} repository cannot be downloaded from {source.key_url}; "
        "nothing was installed",
        "check the address, proxy and ca_bundle",
    )
    command = StringCommand(*options, "-o", target, QuoteString(source.key_url), "||", failed)
    return patiently(command, f"the key of the {source.name} repository", config)


def _verify(source: Source, key: str) -> StringCommand:
    if source.key_sha256:
        found, wanted = f"sha256sum {key} | cut -d ' ' -f 1", source.key_sha256
        remedy = "correct key_sha256 if you trust this key"
    else:
        found, wanted = FINGERPRINTS.format(path=key), source.fingerprint
        remedy = "the publisher may have a new key: compare with the publisher's own page first"
    cause = f"{source.key_url} is not the key that is pinned ({wanted}), but "
    message = shell_message("; nothing was installed", remedy)
    return StringCommand(
        f'found=$({found}); test "$found" =', QuoteString(wanted),
        "|| { printf %s%s", QuoteString(cause), '"$found" >&2;', message,
        f"; rm -f {key}; exit 1; }}",
    )  # fmt: skip


@operation()
def packages(
    wanted: Mapping[str, str],
    hold: bool = False,
    update: bool = False,
    offers: Sequence[str] = (),
) -> Commands:
    """Ensure packages are installed at exactly these versions.

    + wanted: package name -> version, a pattern like `2.3.7-*`, or "" for any version
    + hold: keep apt from changing them in any other way (`apt-mark hold`)
    + offers: packages whose available versions to show when this fails; default: those of
      `wanted` that have a version
    + update: read all package indices first, if anything is to be installed
    """
    if not wanted:
        raise OperationValueError("packages: name at least one package")
    names = sorted(wanted)
    state = host.get_fact(Packages, packages=names)
    missing = [
        name
        for name in names
        if name not in state.versions or not fnmatchcase(state.versions[name], wanted[name] or "*")
    ]
    # installing a held package at another version takes its hold away
    unheld = [name for name in names if name in missing or name not in state.holds] if hold else []
    if not missing and not unheld:
        host.noop(f"packages are installed: {', '.join(names)}")
        return
    changes.record(
        *package_changes(state.versions, {name: wanted[name] for name in missing}, unheld)
    )
    if missing and update:
        # an index that cannot be read may be one that nobody needs here
        read = f"apt-get {_LOCK} update -q -o APT::Update::Error-Mode=any"
        yield patiently(read, "apt's indices", needed=False)
    if missing:
        yield patiently(_install({name: wanted[name] for name in missing}, offers), "packages")
    if unheld:
        yield StringCommand("apt-mark hold", *[QuoteString(name) for name in unheld])


def _install(wanted: Mapping[str, str], offers: Sequence[str]) -> StringCommand:
    words = [f"{name}={version}" if version else name for name, version in wanted.items()]
    shown = list(offers) or [name for name, version in wanted.items() if version]
    if not shown:
        return StringCommand(_INSTALL, *[QuoteString(word) for word in words])
    message = shell_message(
        f"apt cannot install {' '.join(words)}",
        "ask for a version that exists, or correct the repository; apt offers:",
    )
    return StringCommand(
        _INSTALL, *[QuoteString(word) for word in words],
        "|| {", message, "; apt-cache madison",
        *[QuoteString(name) for name in shown], ">&2; exit 1; }",
    )  # fmt: skip
