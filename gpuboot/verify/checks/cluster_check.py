"""Checks that are one file: what the Kubernetes API answers, and what that says of the cluster.

Each module of `of_cluster` has a `CHECK`, and is found there. It is a link of the report and of
docs/checks.md; its question is asked while a verification's pods start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gpuboot.verify.checks.link import Link
from gpuboot.verify.checks.one_file import CheckVerdict


@dataclass(frozen=True)
class Answer:
    """What the API said. + body: of its answer; error: why there is none"""

    body: bytes = b""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ClusterCheck:
    """One check.

    + link: its name, what it proves, where its facts come from, what fails it, and the remedy
    + behind: the link that it follows in the report
    + path: what is asked, a GET below the API server, e.g. `/api/v1/nodes`; `/proxy/` below a
      Service reaches what answers there, such as Prometheus
    + evaluate: what the JSON of the answer says. What does not pass has a remedy. It need not look
      whether the answer has this shape: KeyError, TypeError and their like become `unknown`
    """

    link: Link
    behind: str
    path: str
    evaluate: Callable[[Any], Iterable[CheckVerdict]]
