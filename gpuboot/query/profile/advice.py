"""What each class means, and what to try first: the table `advice.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import cast

from gpuboot.query.profile.classes import Name


@dataclass(frozen=True)
class Advice:
    """+ title: for people; meaning: in a sentence; first: what to try, the likeliest first"""

    title: str
    meaning: str
    first: tuple[str, ...]


def _read() -> dict[Name, Advice]:
    text = resources.files("gpuboot.query.profile").joinpath("advice.toml").read_text("utf-8")
    return {
        cast(Name, name): Advice(entry["title"], entry["meaning"], tuple(entry["first"]))
        for name, entry in tomllib.loads(text).items()
    }


ADVICE: Mapping[Name, Advice] = _read()
