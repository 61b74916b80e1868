"""The tree that a lab's mirror serves: laid out from parts, broken on request, and restored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab.build.store import digest
from lab.host import run, write_atomically
from lab.mirror import apt_repository, lock
from lab.mirror.apt_repository import ARCHITECTURE, sign_release
from lab.mirror.keys import SigningKey
from lab.mirror.parts import Part, Repository
from lab.state import Lab, LabError, cache_dir


def install(lab: Lab, parts: list[Part]) -> None:
    """Lay the parts out as the lab's docroot, unless it has just these."""
    stamp = _stamp(lab)
    version = digest(Path(__file__), Path(lock.__file__))
    content = json.dumps([version, *((str(part.source), part.target) for part in parts)])
    if lab.docroot.exists() and stamp.exists() and stamp.read_text() == content:
        return
    stamp.unlink(missing_ok=True)
    new, old = lab.docroot.with_name("mirror.part"), lab.docroot.with_name("mirror.old")
    for interrupted in (new, old):
        if interrupted.exists():
            shutil.rmtree(interrupted)
    new.mkdir(parents=True)
    for part in parts:
        target = new / part.target
        target.mkdir(parents=True, exist_ok=True)
        _link_tree(part.source, target)
    for repository in lock.served(new, lab.debian).values():
        write_atomically(new / repository.key_path, repository.key().public())
    locked = json.dumps(lock.lock(new, lab.debian), indent=2)
    write_atomically(new / "lab.lock.json", f"{locked}\n".encode())
    if lab.docroot.exists():
        lab.docroot.rename(old)
        new.rename(lab.docroot)
        shutil.rmtree(old)
    else:
        new.rename(lab.docroot)
    stamp.write_text(content)


def restore(lab: Lab) -> None:
    """Lay the docroot out again from the parts it was made of: whatever was broken is whole again.

    Raises `LabError` when the lab has no docroot yet.
    """
    parts = parts_of(lab)
    if not parts:
        raise LabError(f"lab {lab.name} has no mirror yet; scripts/lab makes it")
    shutil.rmtree(lab.docroot, ignore_errors=True)
    install(lab, parts)


def parts_of(lab: Lab) -> list[Part]:
    """The parts that the lab's docroot was laid out from; none when it has none yet."""
    if not _stamp(lab).exists():
        return []
    return [
        Part(Path(source), target) for source, target in json.loads(_stamp(lab).read_text())[1:]
    ]


def corrupt(lab: Lab, target: str) -> Path:
    """Flip one byte of a served file, and return its path.

    `target` is a path below the docroot; of a folder, its largest file is meant.
    """
    path = lab.docroot / target.strip("/")
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        path = max(files, key=lambda file: file.stat().st_size, default=path)
    if not path.is_file():
        raise LabError(f"the mirror has no {target!r}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    write_atomically(path, bytes(content))  # replaces the hard link, not what the store holds
    return path


def withhold(lab: Lab, name: str, version: str) -> int:
    """Serve the apt repository `name` as before the release of a version; how many packages go.

    Machines that read its index now do not know of them when `restore` has released them.
    """
    repository = _repository(lab, name)
    folder = _release_dir(lab, repository)
    within = "." if repository.flat else f"{repository.component}/binary-{ARCHITECTURE}"
    count = apt_repository.withhold(folder, folder / within / "Packages", version, repository.key())
    if not count:
        raise LabError(f"the repository {name} has no packages of {version!r}")
    return count


def _repository(lab: Lab, name: str) -> Repository:
    repositories = lock.served(lab.docroot, lab.debian)
    if name not in repositories:
        raise LabError(f"there is no repository {name!r}; there are: {', '.join(repositories)}")
    return repositories[name]


def _release_dir(lab: Lab, repository: Repository) -> Path:
    folder = lab.docroot / repository.path
    return folder if repository.flat else folder / "dists" / repository.suite


def missign(lab: Lab, name: str) -> None:
    """Sign the apt repository `name` with a key that nobody trusts."""
    folder = _release_dir(lab, _repository(lab, name))
    intruder = SigningKey.ensure(cache_dir() / "keys" / "intruder", "intruder <no@gpuboot.invalid>")
    sign_release(folder, (folder / "Release").read_text(), intruder)


def _stamp(lab: Lab) -> Path:
    return lab.folder / "mirror.parts"


def _link_tree(source: Path, target: Path) -> None:
    same_disk = source.stat().st_dev == target.stat().st_dev
    option = ["--link"] if same_disk else []
    run(["cp", "-a", *option, f"{source}/.", str(target)])
