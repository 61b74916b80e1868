"""Signed apt repositories of the mirror: dpkg-scanpackages lists packages, the lab's keys sign."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gpuboot.mirror import release
from lab.host import write_atomically
from lab.mirror.keys import SigningKey
from lab.state import LabError

ARCHITECTURE = "amd64"


def build_repo(
    directory: Path,
    debs: Iterable[Path],
    key: SigningKey,
    flat: bool,
    *,
    suite: str = "stable",
    component: str = "main",
    origin: str = "gpuboot lab",
) -> Path:
    """Make (or make again) an apt repository of `debs` in `directory`; return its InRelease file.

    A flat repository keeps packages and index in the folder itself; the other kind has
    `dists/<suite>/<component>/binary-amd64/` and `pool/`. Packages are hard links where the
    file system allows it. `Release`, `Release.gpg` and `InRelease` are signed with `key`.
    """
    pool = directory if flat else directory / "pool" / component
    pool.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        _link_or_copy(deb, pool / deb.name)
    content = _scan(directory, pool)
    release_dir = directory if flat else directory / "dists" / suite
    index = release_dir / ("." if flat else f"{component}/binary-{ARCHITECTURE}") / "Packages"
    index.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(index, content)
    names = {} if flat else {"Suite": suite, "Codename": suite, "Components": component}
    fields = {
        "Origin": origin,
        "Label": origin,
        **names,
        "Date": release.date(),
        "Architectures": ARCHITECTURE,
    }
    name = index.relative_to(release_dir).as_posix()
    return sign_release(release_dir, release.text(fields, {name: content}), key)


def withhold(release_dir: Path, index: Path, version: str, key: SigningKey) -> int:
    """Take the packages of a version out of an index, as it was before their release; how many.

    Its files are a day older than those of today: apt takes no index that is not newer than its
    own, and a web server sends none that is not newer than what apt has.

    + version: how their version begins, or their name ends
    """
    today = (release_dir / "Release").stat().st_mtime
    stanzas = index.read_text().strip().split("\n\n")
    remaining_stanzas = [stanza for stanza in stanzas if not _is_of(stanza, version)]
    content = ("\n\n".join(remaining_stanzas) + "\n\n").encode()
    write_atomically(index, content)
    fields = (release_dir / "Release").read_text().partition("SHA256:")[0].splitlines()
    file_fields = dict(line.split(": ", 1) for line in fields)
    date = datetime.strptime(file_fields["Date"], release.DATE).replace(tzinfo=UTC) - timedelta(
        days=1
    )
    file_fields["Date"] = release.date(date)
    name = index.relative_to(release_dir).as_posix()
    sign_release(release_dir, release.text(file_fields, {name: content}), key)
    earlier = today - timedelta(days=1).total_seconds()
    for path in (index, *(release_dir / file for file in ("Release", "Release.gpg", "InRelease"))):
        os.utime(path, (earlier, earlier))
    return len(stanzas) - len(remaining_stanzas)


def _is_of(stanza: str, version: str) -> bool:
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
    bare = fields["Version"].rpartition(":")[2]
    return bare.startswith(version) or fields["Package"].endswith(f"-{version}")


def _scan(directory: Path, pool: Path) -> bytes:
    """The Packages index of what lies in `pool`, with names relative to `directory`."""
    place = pool.relative_to(directory).as_posix()
    command = ["dpkg-scanpackages", "--multiversion", "--hash", "sha256", place]
    result = subprocess.run(command, cwd=directory, capture_output=True)
    if result.returncode != 0:
        raise LabError(f"{' '.join(command)}: {result.stderr.decode().strip()}")
    return result.stdout


def sign_release(release_dir: Path, text: str, key: SigningKey) -> Path:
    """Write `Release`, `Release.gpg` and `InRelease` with `key`'s signatures."""
    content = text.encode()
    write_atomically(release_dir / "Release", content)
    write_atomically(release_dir / "Release.gpg", key.detached(content))
    write_atomically(release_dir / "InRelease", key.clearsigned(content))
    return release_dir / "InRelease"


def _link_or_copy(source: Path, target: Path) -> None:
    """Make `target` a hard link of `source`, or a copy on another file system."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:
        shutil.copy2(source, part)
    part.replace(target)
