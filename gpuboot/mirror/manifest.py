"""What a mirror holds: each file with size, digest and source; and how a folder differs from it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpuboot.config.problems import Problem

NAME = "mirror.json"
_FORMAT = 1
_MOST_NAMED = 20  # problems of one kind; the rest is counted
_REFILL_REMEDY = "run `gpuboot mirror fill` on this folder again: it fetches what is not right"


@dataclass(frozen=True, order=True)
class File:
    """A file of a mirror.

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
    """The manifest in a text. Raises `BadManifestError`."""
    try:
        tree = json.loads(text)
        if tree.pop("format") != _FORMAT:
            raise BadManifestError("its format is of another version of gpuboot")
        files = tuple(File(**entry) for entry in tree.pop("files"))
        platforms, architectures = tuple(tree.pop("platforms")), tuple(tree.pop("architectures"))
        return Manifest(files=files, platforms=platforms, architectures=architectures, **tree)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise BadManifestError(f"{type(error).__name__}: {error}") from None


def differences(defects: Mapping[str, str]) -> list[Problem]:
    """What is missing or altered. + defects: path -> what is wrong with its file, "" for nothing"""
    paths_by_cause: dict[str, list[str]] = defaultdict(list)
    for path, cause in sorted(defects.items()):
        if cause:
            paths_by_cause[cause].append(path)
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


def wrong_versions(
    manifest: Manifest,
    platforms: Iterable[str],
    architectures: Iterable[str],
    versions: Mapping[str, Any],
) -> list[Problem]:
    """What the settings want and the mirror was not filled for. + versions: the lock, as dicts"""
    remedy = "fill the mirror again with these settings, or set the version that it has"
    has = dict(_flat(manifest.versions))
    problems = [
        Problem("", f"versions.{key}: the mirror has {has.get(key, 'none')}, wanted is {want}",
                remedy)
        for key, want in _flat(versions)
        if want and has.get(key) != want
    ]  # fmt: skip
    for name, required, present in (
        ("platforms", platforms, manifest.platforms),
        ("architectures", architectures, manifest.architectures),
    ):
        if missing := sorted(set(required) - set(present)):
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
    """How large one part is."""

    name: str
    files: int
    size: int


def parts(files: Iterable[File]) -> list[Part]:
    """How large each part is. What several images share counts once."""
    grouped = defaultdict[str, list[int]](list)
    for file, *_ in shared(files):
        grouped[file.part].append(file.size)
    return [Part(name, len(sizes), sum(sizes)) for name, sizes in sorted(grouped.items())]


def total(files: Iterable[File]) -> int:
    """Bytes of some files, those with the same content counted once."""
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
