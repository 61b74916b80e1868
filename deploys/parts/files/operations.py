"""Files we own as a whole, many in one operation with one question to the host."""

import hashlib
import posixpath
from collections.abc import Generator, Mapping, Sequence

from pydantic import SecretStr
from pyinfra.api.command import PyinfraCommand, QuoteString, StringCommand
from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.engine.commands import Commands
from deploys.engine.operation import operation
from deploys.parts.files.fact import Files, FileState, FileTexts
from gpuboot.plan import Change
from gpuboot.plan.differences import text_change


@operation()
def present(contents: Mapping[str, str], mode: str = "644", absent: Sequence[str] = ()) -> Commands:
    """Ensure text files have exactly these contents. Nothing secret: contents are on command lines.

    + contents: absolute path -> text
    + mode: their permissions, octal
    + absent: paths that must not exist
    """
    existing = read(Files, paths=[*contents, *absent])
    differing_texts = differing(contents, existing, mode)
    record_texts(differing_texts, existing, mode)
    _record_removed(absent, existing)
    for path, text in differing_texts.items():
        yield write(path, text, mode)
    yield from _removed(absent, existing)
    if not differing_texts and not any(path in existing for path in absent):
        host.noop(f"files are up to date: {', '.join([*contents, *absent])}")


def of_units(
    contents: Mapping[str, str], absent: Sequence[str] = ()
) -> Generator[str | PyinfraCommand, None, bool]:
    """What `present` yields, and systemd told of a change. Returns whether there was one.

    + contents, absent: files of systemd units, and others that change with them
    """
    changed = False
    for command in present._inner(contents, absent=absent):
        changed = True
        yield command
    if changed:
        yield StringCommand("systemctl daemon-reload")
    return changed


@operation()
def secret(contents: Mapping[str, SecretStr | str], absent: Sequence[str] = ()) -> Commands:
    """Ensure text files that only root can read; contents go by standard input, and nowhere else.

    + contents: absolute path -> text, with a newline at its end
    + absent: paths that must not exist
    """
    existing = read(Files, paths=[*contents, *absent])
    texts = {
        path: value.get_secret_value() if isinstance(value, SecretStr) else value
        for path, value in contents.items()
    }
    differing_texts = differing(texts, existing, "600")
    for path in differing_texts:
        old = "" if path in existing else None
        changes.record(Change(subject=f"file {path}", old=old, new="", hidden=True))
    _record_removed(absent, existing)
    for path, text in differing_texts.items():
        part = QuoteString(f"{path}.gpuboot-new")
        yield StringCommand(
            "mkdir -p", QuoteString(posixpath.dirname(path)), "&& (umask 077 && rm -f", part,
            "&& cat >", part, ") && mv", part, QuoteString(path), _stdin=text,
        )  # fmt: skip
    yield from _removed(absent, existing)
    if not differing_texts and not any(path in existing for path in absent):
        host.noop(f"files are up to date: {', '.join([*contents, *absent])}")


def record_texts(
    contents: Mapping[str, str], existing: Mapping[str, FileState], mode: str = "644"
) -> None:
    """Record what becomes of files that hold no secrets.

    + contents: path -> text that is about to be written
    + existing: the files that are there
    """
    readable = [path for path in contents if path in existing]
    texts = read(FileTexts, paths=readable) if readable else {}
    for path, text in contents.items():
        if texts.get(path) == text:
            change = Change(subject=f"file {path}", field="mode", old=existing[path].mode, new=mode)
        else:
            change = text_change(f"file {path}", texts.get(path), text)
        changes.record(change)


def _record_removed(absent: Sequence[str], existing: Mapping[str, FileState]) -> None:
    changes.record(
        *[Change(subject=f"file {path}", old="present") for path in absent if path in existing]
    )


def _removed(absent: Sequence[str], existing: Mapping[str, FileState]) -> Commands:
    for path in absent:
        if path in existing:
            yield StringCommand("rm -f", QuoteString(path))


def write(path: str, text: str, mode: str = "644") -> StringCommand:
    """The command that writes a file in one step: a reader sees the old text or the new."""
    part = QuoteString(f"{path}.gpuboot-new")
    return StringCommand(
        "mkdir -p", QuoteString(posixpath.dirname(path)), "&& printf %s", QuoteString(text),
        ">", part, f"&& chmod {mode}", part, "&& mv", part, QuoteString(path),
    )  # fmt: skip


def write_valid(path: str, text: str, check: str) -> Commands:
    """Commands that write a file, and leave it as it was where a check of the new one fails.

    + check: shell command that takes a path as its last argument
    """
    trial = f"{path}.gpuboot-trial"
    yield write(trial, text)
    yield StringCommand(
        f"{{ {check} {trial} && mv {trial} {path}; }} || {{ rm -f {trial}; exit 1; }}"
    )


def differing(
    contents: Mapping[str, str], existing: Mapping[str, FileState], mode: str = "644"
) -> dict[str, str]:
    """The files that are not there with just this text and mode."""
    return {
        path: text
        for path, text in contents.items()
        if not (state := existing.get(path)) or (state.mode, state.sha256) != (mode, _digest(text))
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
