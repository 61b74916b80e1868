"""Digests of downloads that the version lock has none of, as a site's first download had them.

They stand in `locks/CLUSTER.toml` of the folder in which runs start. What is there counts as the
lock's own digests do: a later download of the same version has to be the same file.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuboot.config.problems import Problem
from gpuboot.config.settings import SettingsError

FOLDER = Path("locks")
_HEAD = """\
# Files that the version lock has no digest of, with the sha256 that they had when this site first
# downloaded them; gpuboot writes it. Keep it with the inventory. A line that you remove is learnt
# anew by the next download.
"""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def path(cluster: str) -> Path:
    """Where the digests of a site are. + cluster: `settings.cluster.name`"""
    return FOLDER / f"{cluster}.toml"


def helm_key(version: str, architecture: str) -> str:
    """The name of Helm's archive in the file. + architecture: amd64 or arm64"""
    return f"helm {version} {architecture}"


def chart_key(chart: str, version: str) -> str:
    """The name of a chart's archive in the file."""
    return f"chart {chart} {version}"


def read(cluster: str) -> dict[str, str]:
    """The digests of a site by their names. Raises `SettingsError` for a file that is no such."""
    file = path(cluster)
    try:
        entries = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError([_damaged(file, str(error))]) from None
    if problems := [
        _damaged(file, f"{key!r} has no sha256, 64 hexadecimal digits")
        for key, digest in entries.items()
        if not _SHA256.fullmatch(str(digest))
    ]:
        raise SettingsError(problems)
    return entries


def _damaged(file: Path, cause: str) -> Problem:
    return Problem("", f"{file}: {cause}", f"correct it, or restore {file} from where you keep it")


def record(cluster: str, key: str, sha256: str) -> Path:
    """Put a digest into the file of a site, and return its path. Raises OSError, `SettingsError`.

    + key: of `helm_key` or `chart_key`
    """
    file = path(cluster)
    lines = [
        f'"{key}" = "{sha256}"' for key, sha256 in sorted((read(cluster) | {key: sha256}).items())
    ]
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(_HEAD + "".join(f"{line}\n" for line in lines))
    os.replace(temporary, file)
    return file


def pinned(lock: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """A lock, as JSON, with the site's digests where it has none. Raises `SettingsError`."""
    digests = read(cluster)
    helm, charts = lock["helm"], lock["charts"]
    sha256 = {
        architecture: digest or digests.get(helm_key(helm["version"], architecture), "")
        for architecture, digest in helm["sha256"].items()
    }
    pinned_charts = {
        name: {**chart, "sha256": chart["sha256"] or digests.get(key, "")}
        for name, chart in charts.items()
        for key in [chart_key(name, chart["version"])]
    }
    return {**lock, "helm": {**helm, "sha256": sha256}, "charts": pinned_charts}
