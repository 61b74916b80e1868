"""What a mirror holds: each file with size, digest and source; and how a folder differs from it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpuboot.config.problems import Problem

NAME = "mirror.json"
_FORMAT = 1
_MOST_NAMED = 20  # problems of one kind; the rest is counted
_REFILL_REMEDY = "run `gpuboot mirror fill` on this folder again: it fetches what is not right"


@dataclass(frozen=True, order=True)
class File:
    """One file of a mirror.

    + path: below the mirror's folder
    + sha256, size: what it must have
    + source: where it was fetched; "" for what the mirror itself made
    + part: what it belongs to: `apt docker`, `charts`, `helm`, `images quay.io`
    """

    path: str
    sha256: str
    size: int
    source: str
    part: str


@dataclass(frozen=True)
class Manifest:
    """+ made: when, in ISO 8601; gpuboot: its version

    + key_sha256: of the public key file that signs its apt repositories
    + versions: the lock that the mirror was filled for; platforms and architectures likewise
    """

    made: str
    gpuboot: str
    platforms: tuple[str, ...]
    architectures: tuple[str, ...]
    key_sha256: str
    versions: Mapping[str, Any]
    files: tuple[File, ...]

    def to_json(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=1) + "\n"


class BadManifestError(ValueError):
    """The text is no manifest of a mirror."""


def from_json(text: str) -> Manifest:
    """Raises `BadManifestError`."""
    try:
        tree = json.loads(text)
        if tree.pop("format") != _FORMAT:
            raise BadManifestError("its format is of another version of gpuboot")
        files = tuple(File(**entry) for entry in tree.pop("files"))
        platforms, architectures = tuple(tree.pop("platforms")), tuple(tree.pop("architectures"))
        return Manifest(files=files, platforms=platforms, architectures=architectures, **tree)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise BadManifestError(f"{type(error).__name__}: {error}") from None


@dataclass(frozen=True)
class FileState:
    """A file as it is. + sha256: "" for one that nobody read, since its size is wrong already"""

    size: int
    sha256: str


def differences(manifest: Manifest, states: Mapping[str, FileState]) -> list[Problem]:
    """What is missing or altered. + found: path -> file, of those that are there"""
    paths_by_cause: dict[str, list[str]] = defaultdict(list)
    for file in sorted(manifest.files):
        state = states.get(file.path)
        if state is None:
            paths_by_cause["is missing"].append(file.path)
        elif state.size < file.size:
            cut = f"is cut off: {state.size} of {file.size} bytes"
            paths_by_cause[cut].append(file.path)
        elif state.size > file.size or state.sha256 != file.sha256:
            paths_by_cause["was altered: its digest is another"].append(file.path)
    return [
        problem
        for cause, paths in paths_by_cause.items()
        for problem in _file_problems(paths, cause)
    ]


def _file_problems(paths: list[str], cause: str) -> Iterator[Problem]:
    for path in paths[:_MOST_NAMED]:
        yield Problem("", f"{path} {cause}", _REFILL_REMEDY)
    if len(paths) > _MOST_NAMED:
        summary = f"and {len(paths) - _MOST_NAMED} files more: each {cause}"
        yield Problem("", summary, _REFILL_REMEDY)


@dataclass(frozen=True)
class Needs:
    """What a site needs of a mirror. + versions: the lock, as nested dicts"""

    platforms: tuple[str, ...]
    architectures: tuple[str, ...]
    versions: Mapping[str, Any] = field(default_factory=dict)


def wrong_versions(manifest: Manifest, needs: Needs) -> list[Problem]:
    """What the settings want and the mirror was not filled for."""
    remedy = "fill the mirror again with these settings, or set the version that it has"
    has, wants = dict(_flat(manifest.versions)), dict(_flat(needs.versions))
    problems = [
        Problem("", f"versions.{key}: the mirror has {has.get(key, 'none')}, wanted is {want}",
                remedy)
        for key, want in wants.items()
        if want and has.get(key) != want
    ]  # fmt: skip
    for name in ("platforms", "architectures"):
        if missing := sorted(set(getattr(needs, name)) - set(getattr(manifest, name))):
            cause = f"the mirror was not filled for {name}: {', '.join(missing)}"
            problems.append(Problem("", cause, "fill the mirror again with these settings"))
    return problems


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


@dataclass(frozen=True)
class Part:
    """How much of one part there is to fetch."""

    name: str
    files: int
    size: int
    missing: int


def parts(files: Iterable[File], present: Iterable[str]) -> list[Part]:
    """How much each part is. What several images share counts once.

    + present: paths of the files that need not be fetched again
    """
    have, grouped = set(present), defaultdict[str, list[File]](list)
    for file in shared(files):
        grouped[file[0].part].append(file[0])
        if any(member.path in have for member in file):
            have.add(file[0].path)
    return [
        Part(name, len(part_files), sum(member.size for member in part_files),
             sum(member.size for member in part_files if member.path not in have))
        for name, part_files in sorted(grouped.items())
    ]  # fmt: skip


def total(files: Iterable[File]) -> int:
    """How many bytes they take, where what is shared is linked."""
    return sum(group[0].size for group in shared(files))


def shared(files: Iterable[File]) -> list[list[File]]:
    """Files by their content: it is fetched once, and linked to the other places."""
    by_digest: dict[str, list[File]] = {}
    for file in files:
        by_digest.setdefault(file.sha256, []).append(file)
    return list(by_digest.values())


def size_text(size: int) -> str:
    """Bytes as people read them: `1.4 GiB`."""
    amount, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
