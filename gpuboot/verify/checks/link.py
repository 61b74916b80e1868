"""One link of the proof chain, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Subject = Literal["card", "device", "deep", "cluster"]


@dataclass(frozen=True, kw_only=True)
class Link:
    """One link.

    + passes: what is true when it passes, in a few words
    + facts: where what it compares comes from
    + fails: what fails it
    + remedy: how the remedy of its commonest failure begins, in a cluster
    + subject: what it is about: a physical GPU; what pods can hold (a GPU or a MIG device); a
      physical GPU that is tested for long, which only the level `deep` does; or the whole cluster
    + docker: Docker hosts have it, too
    """

    name: str
    passes: str
    facts: str
    fails: str
    remedy: str
    subject: Subject
    docker: bool
