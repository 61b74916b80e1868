"""Signed apt repositories of the mirror: dpkg-scanpackages lists packages, the lab's keys sign."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from lab.host import write_atomically
from lab.mirror.keys import SigningKey
from lab.state import LabError


def build_repo(
    directory: Path,
    debs: Iterable[Path],
    key: SigningKey,
    flat: bool,
    *,
    suite: str = "stable",
    component: str = "main",
    architectures: tuple[str, ...] = ("amd64",),
    origin: str = "gpuboot lab",
) -> Path:
    """Make (or make again) an apt repository of `debs` in `directory`; return its InRelease file.

    A flat repository keeps packages and indices in the folder itself; the other kind has
    `dists/<suite>/<component>/binary-<arch>/` and `pool/`. Packages are hard links where the
    file system allows it. `Release`, `Release.gpg` and `InRelease` are signed with `key`.
    """
    pool = directory if flat else directory / "pool" / component
    pool.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        _link_or_copy(deb, pool / deb.name)
    index = _scan(directory, pool)
    release_dir = directory if flat else directory / "dists" / suite
    names = ["."] if flat else [f"{component}/binary-{arch}" for arch in architectures]
    for name in names:
        folder = release_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "Packages", index)
    release = _release(release_dir, names, flat, suite, component, architectures, origin)
    return sign_release(release_dir, release, key)


def _scan(directory: Path, pool: Path) -> bytes:
    """The Packages index of what lies in `pool`, with names relative to `directory`."""
    place = pool.relative_to(directory).as_posix()
    command = ["dpkg-scanpackages", "--multiversion", "--hash", "sha256", place]
    done = subprocess.run(command, cwd=directory, capture_output=True)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.decode().strip()}")
    return done.stdout


def _release(
    release_dir: Path,
    names: list[str],
    flat: bool,
    suite: str,
    component: str,
    architectures: tuple[str, ...],
    origin: str,
) -> str:
    head = {
        "Origin": origin,
        "Label": origin,
        "Suite": "" if flat else suite,
        "Codename": "" if flat else suite,
        "Date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S UTC"),
        "Architectures": " ".join(architectures),
        "Components": "" if flat else component,
    }
    lines = [f"{key}: {value}" for key, value in head.items() if value]
    lines.append("SHA256:")
    for name in names:
        path = release_dir / name / "Packages"
        content = path.read_bytes()
        relative = path.relative_to(release_dir).as_posix()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {relative}")
    return "\n".join(lines) + "\n"


def sign_release(release_dir: Path, release: str, key: SigningKey) -> Path:
    """Write `Release`, `Release.gpg` and `InRelease` with `key`'s signatures."""
    write_atomically(release_dir / "Release", release.encode())
    write_atomically(release_dir / "Release.gpg", key.detached(release.encode()))
    write_atomically(release_dir / "InRelease", key.clearsigned(release.encode()))
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
