"""Alertmanager and amtool for tests: the version the lab is built with, else Debian's amtool."""

from __future__ import annotations

import re
import subprocess
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpuboot.config import settings
from gpuboot.monitoring import alerting
from tests import tools

URL_FILE = (0, 26)  # the first Alertmanager that reads a webhook's address from a file


@dataclass(frozen=True)
class Programs:
    """alertmanager: None where only Debian's is to be had, which runs nowhere but installed."""

    alertmanager: Path | None
    amtool: Path
    version: tuple[int, int]


@cache
def programs() -> Programs:
    """What there is. Raises `tests.tools.ToolError` when nothing can be had."""
    built = sorted(tools.CACHE.glob("store/alertmanager-*/bin"), key=lambda p: p.stat().st_mtime)
    if built:
        alertmanager: Path | None = built[-1] / "alertmanager"
        checker = built[-1] / "amtool"
    else:
        alertmanager, checker = None, tools.amtool()
    output = subprocess.run(
        [checker, "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = re.search(r"version (\d+)\.(\d+)", output)
    assert version, output
    return Programs(alertmanager, checker, (int(version[1]), int(version[2])))


def write(data: dict[str, Any], folder: Path, secrets: str = "/run/secrets") -> Path:
    """alertmanager.yml and its templates, for the settings section `alertmanager`.

    + secrets: the folder of the secrets' files

    Debian's amtool may be too old for `url_file`: there any address takes its place.
    """
    site_settings = settings.parse_settings({"alertmanager": data})
    config = deepcopy(alerting.config(site_settings, secrets))
    if programs().version < URL_FILE:
        for receiver in config["receivers"]:
            for webhook in receiver.get("webhook_configs", []):
                del webhook["url_file"]
                webhook["url"] = "http://127.0.0.1:9"
    for name, text in alerting.templates().items():
        (folder / name).write_text(text)
    path = folder / "alertmanager.yml"
    path.write_text(yaml.safe_dump(config))
    return path


def amtool(*arguments: str | Path) -> str:
    """What amtool prints. Raises AssertionError with all of it when it fails."""
    result = subprocess.run(
        [programs().amtool, *arguments], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
    return result.stdout.strip()
