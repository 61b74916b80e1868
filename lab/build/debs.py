"""Debian binary packages, described by value and packed by dpkg-deb.

Owners, times and order are fixed, so equal descriptions give equal bytes. Nothing is compressed:
packages go over a local bridge, where compressing costs more than it saves.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SIMULATED = "SIMULATED by the gpuboot lab"
MAINTAINER = "gpuboot lab <lab@gpuboot.invalid>"
SYMLINK = "-> "
# 2020-01-01, in unix seconds: dpkg-deb gives this time to every file that is newer, so to all.
_SOURCE_DATE_EPOCH = "1577836800"


@dataclass(frozen=True)
class Deb:
    """A binary package, described by value.

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
    recommends: str = ""
    section: str = "admin"

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
        "Maintainer": MAINTAINER,
        "Installed-Size": str(installed_kib),
        "Depends": deb.depends,
        "Recommends": deb.recommends,
        "Conflicts": deb.conflicts,
        "Replaces": deb.replaces,
        "Provides": deb.provides,
        "Section": deb.section,
        "Priority": "optional",
        "Description": _description(deb.description or deb.name),
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def _description(text: str) -> str:
    first, *paragraphs = text.strip().splitlines()
    return "\n".join([first, *(f" {line.strip() or '.'}" for line in paragraphs)])


def build_deb(deb: Deb, out: Path) -> Path:
    """Write `deb` into the folder `out` and return the archive's path.

    Raises `FileNotFoundError` for a missing source file, and `ValueError` for a destination that
    is not absolute or, with dpkg-deb's reason, for what dpkg-deb refuses.
    """
    if relative := [dest for dest in deb.files if not dest.startswith("/")]:
        raise ValueError(f"{deb.name}: {relative[0]} is not an absolute path")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pack-", dir=out) as scratch:
        tree = Path(scratch) / "tree"
        _write_files(deb, tree)
        _write_control(deb, tree)
        archive = Path(scratch) / deb.filename
        _pack(tree, archive)
        return archive.replace(out / deb.filename)


def _write_files(deb: Deb, tree: Path) -> None:
    for dest, source in deb.files.items():
        target = tree / dest.lstrip("/")
        if dest.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, str) and source.startswith(SYMLINK):
            target.symlink_to(source.removeprefix(SYMLINK))
            continue
        if isinstance(source, Path):
            shutil.copyfile(source, target)
        else:
            target.write_bytes(source.encode() if isinstance(source, str) else source)
        target.chmod(deb.modes.get(dest) or _mode(dest, source))


def _write_control(deb: Deb, tree: Path) -> None:
    folder = tree / "DEBIAN"
    sizes = [path.lstat().st_size for path in tree.rglob("*") if path.is_file()]
    texts = {"control": control(deb, sum(sizes) // 1024 + 1), **deb.scripts}
    if deb.conffiles:
        texts["conffiles"] = "".join(f"{path}\n" for path in deb.conffiles)
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
        executable = name in deb.scripts and name != "triggers"
        (folder / name).chmod(0o755 if executable else 0o644)


def _pack(tree: Path, archive: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)  # whatever the umask
    result = subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(archive)],
        env={**os.environ, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": _SOURCE_DATE_EPOCH},
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise ValueError(f"{archive.name}: {result.stderr.strip()}")


def _mode(dest: str, source: Path | bytes | str) -> int:
    if isinstance(source, Path) and os.access(source, os.X_OK):
        return 0o755
    folder = posixpath.basename(posixpath.dirname(dest))
    return 0o755 if folder in {"bin", "sbin", "init.d"} else 0o644
