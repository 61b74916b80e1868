"""What a side gets to know of the machines, and how it tells the result of a run.

A side is one of the tools that are compared: gpuboot, Ansible, Ansible with Mitogen, plain pyinfra.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from lab.state import Role

SITE_VARIABLE = "GPUBOOT_BENCH_SITE"


@dataclass(frozen=True)
class Host:
    """A machine. `gpus` are simulated."""

    name: str
    address: str
    role: Role
    gpus: int


@dataclass(frozen=True)
class Site:
    """The machines of one measurement, and how to reach them: as root, by key.

    + lab: name of the lab whose mirror they use; its settings: `lab.settings.settings(lab)`
    + folder: of this set of machines, for files of either side
    """

    lab: str
    folder: Path
    ssh_key: Path
    known_hosts: Path
    hosts: tuple[Host, ...]

    @property
    def file(self) -> Path:
        """The file that `save` writes; $GPUBOOT_BENCH_SITE tells a side's inventory."""
        return self.folder / "site.json"

    def save(self) -> None:
        """Write the site for `load`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {**asdict(self), "folder": str(self.folder)}
        content |= {"ssh_key": str(self.ssh_key), "known_hosts": str(self.known_hosts)}
        self.file.write_text(json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Site:
        """The site that `save` wrote to `path`."""
        data = json.loads(path.read_text())
        hosts = tuple(Host(**host) for host in data["hosts"])
        paths = {key: Path(data[key]) for key in ("folder", "ssh_key", "known_hosts")}
        return cls(lab=data["lab"], hosts=hosts, **paths)


@dataclass(frozen=True)
class Command:
    """The command of a side. + env: what is added to the environment"""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


@dataclass(frozen=True)
class Outcome:
    """The result of a side's run.

    + changed: host -> names of the tasks or operations that changed it; others are missing
    + failed: host -> why
    """

    changed: Mapping[str, tuple[str, ...]]
    failed: Mapping[str, str]


class Side(Protocol):
    """A tool that is compared. `work` is its own folder for a set of machines."""

    @property
    def name(self) -> str:
        """Short name, as in results."""

    @property
    def title(self) -> str:
        """Name for people."""

    def command(self, site: Site, work: Path) -> Command:
        """The command that brings all machines of the site to the described state."""

    def outcome(self, stdout: str, stderr: str, work: Path) -> Outcome:
        """The result by a run's output. Raises `ValueError` for output it does not understand."""
