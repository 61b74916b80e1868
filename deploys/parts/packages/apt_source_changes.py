"""Shell commands that change a host's apt sources: all of a change, or nothing of it."""

import posixpath
import shlex
from collections.abc import Sequence

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


def check_private_sources(name: str) -> StringCommand:
    """Fail where apt would refuse the private copy's sources, with what it says.

    + name: of the repository that is new in it
    """
    cause = f"apt refuses the sources of this host with the {name} repository among them: "
    message = shell_message(
        "; nothing was changed",
        "correct the file that it names; where it names none, look in /etc/apt/sources.list and "
        "/etc/apt/sources.list.d for entries of the address that it names",
    )
    return StringCommand(
        f"found=$({_CHECK.format(OPTIONS)} 2>&1 >/dev/null) || {{ printf %s", QuoteString(cause),
        f'>&2; printf %s "$found" | sed "s#{FOLDER}/#/etc/apt/#g" >&2;', message, "; exit 1; }",
    )  # fmt: skip


def changed(path: str, text: str, key_path: str, key: str, edits: Sequence[Edit]) -> StringCommand:
    """Write a repository's file and key, and take the entries of others that it replaces.

    What it changed is put back where one step of it fails, or apt refuses what comes of it. A file
    of others has a copy beside it, as it was before the first change.

    + key: the file that becomes the key
    """
    files = [path, key_path, *dict.fromkeys(edit.path for edit in edits)]
    backups = [(shlex.quote(file), f"{FOLDER}/before.{place}") for place, file in enumerate(files)]
    steps = [f"before {file} {copy}" for file, copy in backups]
    for file in files[2:]:
        copied = shlex.quote(f"{file}{COPY}")
        steps.append(f"{{ [ -e {copied} ] || cp -pL {shlex.quote(file)} {copied}; }}")
    back = "; ".join(f"back {file} {copy}" for file, copy in backups)
    changes = [
        f"file=$(readlink -f {shlex.quote(edit.path)}) && {replace_lines(edit)}"
        for edit in sorted(edits, reverse=True)
    ]
    new = shlex.quote(f"{path}.gpuboot-new")
    changes += [
        f"mkdir -p {posixpath.dirname(key_path)} && chmod 0755 {posixpath.dirname(key_path)}",
        f"install -m 0644 {key} {shlex.quote(key_path)}",
        f"printf %s {shlex.quote(text)} > {new} && chmod 0644 {new}",
        f"mv {new} {shlex.quote(path)}",
        f"{_CHECK.format('')} >/dev/null",
    ]
    failed = shell_message("the sources of apt on this host cannot be changed; they are as before")
    lines = [
        _FILES,
        " &&\n".join([*steps, ""]) + "{",
        " &&\n".join(changes) + " ||",
        f"{{ {back}; {failed.get_raw_value()}; exit 1; }}",
        "}",
    ]
    return StringCommand("\n".join(lines))
