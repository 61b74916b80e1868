"""What checks that are one file have in common: how they are found, and what they say."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class CheckVerdict:
    """What a check says: a finding without what all of them have in common.

    + status, detail, remedy: as of `gpuboot.verify.findings.Finding`
    + uuid: of the GPU; None: it is about the host, or the cluster
    + node: name in the cluster, where a check of the cluster is about one
    """

    status: Literal["pass", "fail", "not_covered", "unknown"]
    detail: str
    remedy: str = ""
    uuid: str | None = None
    node: str = ""


def found_in(package: ModuleType) -> tuple[Any, ...]:
    """The `CHECK` of each module of a package, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(import_module(f"{package.__name__}.{name}").CHECK for name in names)
