"""Checks that are one file, and what all checks have in common: a link of the proof chain.

Each module of `of_hosts` has a `CHECK`: what a command on a host prints, and what that says of its
GPUs. It is run with what a verification reads of a host anyway. So has each of `of_cluster`: what
the Kubernetes API answers, and what that says of the cluster; it is asked while a verification's
pods start. `one_file_checks` finds both. They are links of the report and of docs/checks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Subject = Literal["card", "device", "deep", "cluster"]
TIMED_OUT = 124  # exit status of timeout(1)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of the proof chain.

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


@dataclass(frozen=True, kw_only=True)
class CheckVerdict:
    """What a check found: a finding without what all of them have in common.

    + status, detail, remedy: as of `gpuboot.verify.findings.Finding`
    + uuid: of the GPU; None: it is about the host, or the cluster
    + node: name in the cluster, where a check of the cluster is about one
    """

    status: Literal["pass", "fail", "not_covered", "unknown"]
    detail: str
    remedy: str = ""
    uuid: str | None = None
    node: str = ""


@dataclass(frozen=True)
class CommandOutput:
    """What a check's command printed on a host.

    + exit: its status
    + requested, answered: our time before and after, seconds since 1970; 0: nobody noted it
    """

    text: str = ""
    exit: int = 0
    requested: float = 0.0
    answered: float = 0.0


@dataclass(frozen=True, kw_only=True)
class HostCheck:
    """A check of hosts.

    + link: its name, what it proves, where its facts come from, what fails it, and the remedy
    + behind: the link that it follows in the chain
    + command: POSIX sh, run as root; it changes nothing. It has `timeout_s` to end
    + evaluate: what that says of a host, whose working GPUs are given as UUID -> model; nothing
      where the link does not concern it. What does not pass has a remedy
    """

    link: Link
    behind: str
    command: str
    evaluate: Callable[[Mapping[str, str], CommandOutput], Iterable[CheckVerdict]]
    timeout_s: int = 30


@dataclass(frozen=True)
class Answer:
    """What the API said. + body: of its answer; error: why there is none"""

    body: bytes = b""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ClusterCheck:
    """A check of the cluster.

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
