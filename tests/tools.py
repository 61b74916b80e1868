"""Prometheus' and Alertmanager's own checkers: those the lab has built, else Debian's.

The lab's are of the versions that run in it, but are there only after a lab was made. Installing
Debian's packages would start both services on this machine: their programs alone are taken out of
them into the cache folder; nothing else of the machine changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

CACHE = Path(os.environ.get("GPUBOOT_CACHE", "/var/cache/gpuboot"))


class ToolError(RuntimeError):
    """A checker is not here and cannot be had. The message says what to do."""


def promtool() -> Path:
    """promtool, for rules and expressions. Raises `ToolError` when it cannot be had."""
    return _tool("promtool", "prometheus")


def amtool() -> Path:
    """amtool, for Alertmanager's configuration. Raises `ToolError` when it cannot be had."""
    return _tool("amtool", "prometheus-alertmanager")


@cache
def _tool(name: str, package: str) -> Path:
    built = sorted(CACHE.glob(f"store/*/bin/{name}"), key=lambda path: path.stat().st_mtime)
    if built:
        return built[-1]
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    cached = _folder() / "checkers" / package / "usr/bin" / name
    if not cached.exists():
        _unpack(package, cached.parents[2])
    return cached


def _folder() -> Path:
    """The lab's cache; a user who may not write there has one of their own."""
    folder = CACHE
    while not folder.exists():
        folder = folder.parent
    return CACHE if os.access(folder, os.W_OK) else Path.home() / ".cache/gpuboot"


def _unpack(package: str, target: Path) -> None:
    """Download a package as apt would install it, and unpack it beside its place, then into it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{package}-", dir=target.parent) as work:
        # apt's own downloader has no access to this folder; it then downloads as us, and says so
        download = ["apt-get", "-q", "download", package]
        try:
            _run(package, download, work)
        except ToolError:
            if os.geteuid() != 0:
                raise
            # a machine that was just made has no package lists yet
            _run(package, ["apt-get", "-q", "update"], work)
            _run(package, download, work)
        (archive,) = Path(work).glob("*.deb")
        unpacked = Path(work) / "unpacked"
        _run(package, ["dpkg", "-x", str(archive), str(unpacked)], work)
        # another process of the tests may be first
        with suppress(OSError):
            unpacked.rename(target)


def _run(package: str, command: list[str], folder: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        message = getattr(error, "stderr", None) or error
        raise ToolError(
            f"{' '.join(command)}: {message}\n    remedy: `apt-get update`, or install promtool and"
            f" amtool anywhere on PATH (Debian's package {package} has one of them)"
        ) from error
