"""Shell commands that change a host's apt sources: all of a change, or nothing of it."""

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence

from pyinfra.api.command import QuoteString, StringCommand

from deploys.engine.commands import shell_message
from deploys.parts.packages.apt_private import FOLDER, OPTIONS, replace_lines
from gpuboot.hosts.apt_sources import Edit

# apt ignores such names without a word (Dir::Ignore-Files-Silently)
COPY = ".gpuboot.save"
_CHECK = "LC_ALL=C apt-get {} indextargets"
_FILES = """\
before() { if [ -e "$1" ]; then cp -p "$1" "$2"; fi; }
back() { if [ -e "$2" ]; then cp -p "$2" "$1"; else rm -f "$1"; fi; }"""


def check_private_sources(names: str) -> StringCommand:
    """Fail where apt would refuse the private copy's sources, with what it says.

    + names: of the repositories that are new in it
    """
    cause = f"apt refuses the sources of this host with these repositories among them ({names}): "
    message = shell_message(
        "; nothing was changed",
        "correct the file that it names; where it names none, look in /etc/apt/sources.list and "
        "/etc/apt/sources.list.d for entries of the address that it names",
    )
    return StringCommand(
        f"found=$({_CHECK.format(OPTIONS)} 2>&1 >/dev/null) || {{ printf %s", QuoteString(cause),
        f'>&2; printf %s "$found" | sed "s#{FOLDER}/#/etc/apt/#g" >&2;', message, "; exit 1; }",
    )  # fmt: skip


def changed(
    texts: Mapping[str, str], keys: Mapping[str, str], edits: Sequence[Edit]
) -> StringCommand:
    """Write files and keys of repositories, and take the entries of others that they replace.

    What it changed is put back where one step of it fails, or apt refuses what comes of it. A file
    of others has a copy beside it, as it was before the first change.

    + texts: path of each file -> its text
    + keys: path of each key -> the file that becomes it
    """
    foreign_files = list(dict.fromkeys(edit.path for edit in edits))
    files = [*texts, *keys, *foreign_files]
    backups = [(shlex.quote(file), f"{FOLDER}/before.{place}") for place, file in enumerate(files)]
    steps = [f"before {file} {copy}" for file, copy in backups]
    for file in foreign_files:
        copied = shlex.quote(f"{file}{COPY}")
        steps.append(f"{{ [ -e {copied} ] || cp -pL {shlex.quote(file)} {copied}; }}")
    back = "; ".join(f"back {file} {copy}" for file, copy in backups)
    changes = [
        f"file=$(readlink -f {shlex.quote(edit.path)}) && {replace_lines(edit)}"
        for edit in sorted(edits, reverse=True)
    ]
    changes += [*_new_keys(keys), *_new_texts(texts)]
    changes.append(f"{_CHECK.format('')} >/dev/null")
    failed = shell_message("the sources of apt on this host cannot be changed; they are as before")
    lines = [
        _FILES,
        " &&\n".join([*steps, ""]) + "{",
        " &&\n".join(changes) + " ||",
        f"{{ {back}; {failed.get_raw_value()}; exit 1; }}",
        "}",
    ]
    return StringCommand("\n".join(lines))


def _new_keys(keys: Mapping[str, str]) -> Iterator[str]:
    for path, key in keys.items():
        folder = posixpath.dirname(path)
        yield f"mkdir -p {folder} && chmod 0755 {folder}"
        yield f"install -m 0644 {key} {shlex.quote(path)}"


def _new_texts(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in texts.items():
        new = shlex.quote(f"{path}.gpuboot-new")
        yield f"printf %s {shlex.quote(text)} > {new} && chmod 0644 {new}"
        yield f"mv {new} {shlex.quote(path)}"
