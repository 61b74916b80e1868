"""Entries of apt's sources: lines of a `.list` file, stanzas of a `.sources` file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Lines of a sources file that become others.

    + path: of the file
    + first, last: the lines, counted from 1 in the file as it is
    + text: what takes their place, whole lines; "": nothing
    """

    path: str
    first: int
    last: int
    text: str = ""
