"""Why installations and downloads fail, by what programs print: tables of patterns.

The tables are `install_failures.toml` and `download_failures.toml`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuboot.config.tables import read_table


@dataclass(frozen=True)
class Failure:
    """A cause that a program's output names, and its remedy.

    + version: it helps to see which versions there are
    """

    pattern: re.Pattern[str]
    cause: str
    remedy: str
    version: bool = False


def _load(table: str) -> dict[str, Failure]:
    rows = read_table(f"hosts/{table}.toml")
    return {name: Failure(re.compile(row.pop("pattern")), **row) for name, row in rows.items()}


# of downloads, by name; the first that fits counts
FAILURES: Mapping[str, Failure] = _load("download_failures")
_INSTALLS = _load("install_failures")


def explain(output: str) -> Failure | None:
    """What a package manager's output says of its failure; None where it is in no words we know."""
    return next((item for item in _INSTALLS.values() if item.pattern.search(output)), None)


def name_of(output: str) -> str:
    """The name in `FAILURES` of the cause that a download's output tells; "" for none."""
    return next((name for name, item in FAILURES.items() if item.pattern.search(output)), "")
