"""The list of fields that exporters are to collect, as a cluster has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestedFields:
    """The list of fields that the exporters are to collect.

    + names: of the metrics that it makes
    + digest: of the list
    + error: why the list cannot be read; all else is then empty
    """

    names: frozenset[str] = frozenset()
    digest: str = ""
    error: str = ""
