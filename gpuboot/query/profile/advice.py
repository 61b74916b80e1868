"""What each class means, and what to try first: the table `advice.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gpuboot.config.tables import read_table
from gpuboot.query.profile.classes import Name


@dataclass(frozen=True)
class Advice:
    """+ title: for people; meaning: in a sentence; first: what to try, the likeliest first"""

    title: str
    meaning: str
    first: tuple[str, ...]


def _read() -> dict[Name, Advice]:
    return {
        cast(Name, name): Advice(entry["title"], entry["meaning"], tuple(entry["first"]))
        for name, entry in read_table("query/profile/advice.toml").items()
    }


ADVICE: Mapping[Name, Advice] = _read()
