"""What a run is going to install on its hosts, as its operations tell while they are compared.

Preflight has the package manager rehearse all of it at once (`deploys/phases/rehearsal.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deploys.engine import answers
from gpuboot.hosts.apt_sources import Edit
from gpuboot.hosts.repositories import Repository


@dataclass(frozen=True)
class Source:
    """A repository that a host is to have. + edits: entries of others for it, which go"""

    repository: Repository
    edits: tuple[Edit, ...] = ()


@dataclass
class PlannedPackages:
    """What operations install on one host.

    + packages: those that it lacks -> version, its pattern, or "" for any
    + sources: by name of their repository, those that it has already as well
    """

    packages: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)


def note_packages(missing: Mapping[str, str]) -> None:
    """The operation that is compared installs these."""
    if step := answers.compared_step():
        step.packages.update(missing)


def note_source(source: Source) -> None:
    """The operation that is compared ensures this repository."""
    if step := answers.compared_step():
        step.sources[source.repository.name] = source
