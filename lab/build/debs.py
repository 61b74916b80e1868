"""Debian binary packages and signed apt repositories, written without a build tree.

A package is an `ar` archive of three members (deb(5)): `debian-binary`, the control archive and
the data archive. Times, owners and order are fixed, so equal inputs give equal bytes. The data
archive is not compressed: packages go over a local bridge, where compressing costs more than it
saves.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from lab.mirror.keys import SigningKey

SIMULATED = "SIMULATED by the gpuboot lab"
MAINTAINER = "gpuboot lab <lab@gpuboot.invalid>"
SYMLINK = "-> "
_EPOCH = 1767225600  # 2026-01-01T00:00:00Z: one fixed time in every archive


@dataclass(frozen=True)
class Deb:
    """One binary package, described by value.

    `files` maps an absolute destination path to a source file (`Path`), literal content (`bytes`
    or `str`), a symbolic link (`"-> target"`), or, where the path ends in "/", a directory.
    `modes` overrides permissions by destination path; without it a file is 0755 when its source
    is executable or it lies in a bin, sbin or init.d folder, else 0644. `scripts` maps maintainer
    script names (postinst, prerm, …) and `triggers` to their text.
    """

    name: str
    version: str
    architecture: str = "amd64"
    depends: str = ""
    description: str = ""
    files: Mapping[str, Path | bytes | str] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    conffiles: tuple[str, ...] = ()
    provides: str = ""
    conflicts: str = ""
    replaces: str = ""
    pre_depends: str = ""
    recommends: str = ""
    breaks: str = ""
    section: str = "admin"
    maintainer: str = MAINTAINER

    @property
    def filename(self) -> str:
        """The archive's file name; an epoch is left out, as in Debian's pools."""
        return f"{self.name}_{self.version.split(':', 1)[-1]}_{self.architecture}.deb"


def control(deb: Deb, installed_kib: int) -> str:
    """The package's control file. `installed_kib` is the size on disk in KiB."""
    fields = {
        "Package": deb.name,
        "Version": deb.version,
        "Architecture": deb.architecture,
        "Maintainer": deb.maintainer,
        "Installed-Size": str(installed_kib),
        "Pre-Depends": deb.pre_depends,
        "Depends": deb.depends,
        "Recommends": deb.recommends,
        "Conflicts": deb.conflicts,
        "Breaks": deb.breaks,
        "Replaces": deb.replaces,
        "Provides": deb.provides,
        "Section": deb.section,
        "Priority": "optional",
        "Description": _description(deb.description or deb.name),
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def _description(text: str) -> str:
    first, *rest = text.strip().splitlines()
    return "\n".join([first, *(f" {line.strip() or '.'}" for line in rest)])


def build_deb(deb: Deb, out: Path) -> Path:
    """Write `deb` into the folder `out` and return the archive's path.

    Raises `FileNotFoundError` for a missing source file and `ValueError` for a destination that
    is not absolute or a conffile that the package does not contain.
    """
    _check(deb)
    out.mkdir(parents=True, exist_ok=True)
    path = out / deb.filename
    part = path.with_name(f".{path.name}.{os.getpid()}")
    data = part.with_suffix(".data")
    try:
        with data.open("w+b") as stream:
            sums, size = _write_data(deb, stream)
            archive = _control_archive(deb, sums, size // 1024 + 1)
            with part.open("wb") as target:
                target.write(b"!<arch>\n")
                _member(target, "debian-binary", io.BytesIO(b"2.0\n"))
                _member(target, "control.tar.gz", io.BytesIO(archive))
                _member(target, "data.tar", stream)
        part.replace(path)
    finally:
        data.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    return path


def _check(deb: Deb) -> None:
    for dest in deb.files:
        if not dest.startswith("/"):
            raise ValueError(f"{deb.name}: {dest} is not an absolute path")
    missing = [name for name in deb.conffiles if name not in deb.files]
    if missing:
        raise ValueError(f"{deb.name}: conffiles not in the package: {', '.join(missing)}")


def _member(target: BinaryIO, name: str, source: BinaryIO) -> None:
    size = source.seek(0, os.SEEK_END)
    source.seek(0)
    target.write(f"{name:<16}{_EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{size:<10}`\n".encode())
    while chunk := source.read(1 << 20):
        target.write(chunk)
    if size % 2:
        target.write(b"\n")


def _control_archive(deb: Deb, sums: Mapping[str, str], installed_kib: int) -> bytes:
    texts = {"control": control(deb, installed_kib)}
    if sums:
        texts["md5sums"] = "".join(f"{digest}  {path}\n" for path, digest in sums.items())
    if deb.conffiles:
        texts["conffiles"] = "".join(f"{path}\n" for path in deb.conffiles)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as tar:
        for name, text in {**texts, **deb.scripts}.items():
            executable = name in deb.scripts and name != "triggers"
            info = _info(f"./{name}", 0o755 if executable else 0o644)
            _add(tar, info, io.BytesIO(text.encode()), len(text.encode()))
    return buffer.getvalue()


def _write_data(deb: Deb, stream: BinaryIO) -> tuple[dict[str, str], int]:
    """Write the data archive; return md5 sums by relative path, and the bytes of all files."""
    sums: dict[str, str] = {}
    total = 0
    made: set[str] = {"/"}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(_info("./", 0o755, tarfile.DIRTYPE))
        for dest in sorted(deb.files):
            _add_parents(tar, dest, made, deb.modes)
            if dest.endswith("/"):
                continue
            total += _add_file(tar, dest, deb.files[dest], deb.modes.get(dest), sums)
    return sums, total


def _add_parents(tar: tarfile.TarFile, dest: str, made: set[str], modes: Mapping[str, int]) -> None:
    parts = [part for part in posixpath.dirname(dest).split("/") if part]
    for depth in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:depth])
        if folder not in made:
            made.add(folder)
            mode = modes.get(folder, modes.get(folder + "/", 0o755))
            tar.addfile(_info(f".{folder}/", mode, tarfile.DIRTYPE))


def _add_file(
    tar: tarfile.TarFile,
    dest: str,
    source: Path | bytes | str,
    mode: int | None,
    sums: dict[str, str],
) -> int:
    if isinstance(source, str) and source.startswith(SYMLINK):
        info = _info(f".{dest}", 0o777, tarfile.SYMTYPE)
        info.linkname = source.removeprefix(SYMLINK)
        tar.addfile(info)
        return 0
    relative = dest.removeprefix("/")
    if isinstance(source, Path):
        with source.open("rb") as stream:
            sums[relative] = hashlib.file_digest(stream, "md5").hexdigest()
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            _add(tar, _info(f".{dest}", mode or _mode(dest, source)), stream, size)
        return size
    content = source.encode() if isinstance(source, str) else source
    sums[relative] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    _add(tar, _info(f".{dest}", mode or _mode(dest, None)), io.BytesIO(content), len(content))
    return len(content)


def _mode(dest: str, source: Path | None) -> int:
    if source is not None and os.access(source, os.X_OK):
        return 0o755
    folder = posixpath.basename(posixpath.dirname(dest))
    return 0o755 if folder in {"bin", "sbin", "init.d"} else 0o644


def _info(name: str, mode: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, _EPOCH
    info.uname = info.gname = "root"
    return info


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, stream: BinaryIO, size: int) -> None:
    info.size = size
    tar.addfile(info, stream)


def packages_entry(deb: Path, filename: str) -> str:
    """One paragraph of a Packages index: the archive's control fields, location and hashes."""
    fields = subprocess.run(
        ["dpkg-deb", "-f", str(deb)], check=True, capture_output=True, text=True
    ).stdout.strip()
    with deb.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    size = deb.stat().st_size
    return f"{fields}\nFilename: {filename}\nSize: {size}\nSHA256: {digest}\n"


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
    entries = []
    for deb in sorted(debs, key=lambda path: path.name):
        target = pool / deb.name
        link_or_copy(deb, target)
        name = f"./{deb.name}" if flat else target.relative_to(directory).as_posix()
        entries.append(packages_entry(target, name))
    index = "\n".join(entries).encode()
    release_dir = directory if flat else directory / "dists" / suite
    names = ["."] if flat else [f"{component}/binary-{arch}" for arch in architectures]
    for name in names:
        folder = release_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "Packages", index)
    release = _release(release_dir, names, flat, suite, component, architectures, origin)
    return sign_release(release_dir, release, key)


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


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` in one step. Never writes into a hard-linked original."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)


def link_or_copy(source: Path, target: Path) -> None:
    """Make `target` a hard link of `source`, or a copy on another file system."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:
        shutil.copy2(source, part)
    part.replace(target)
