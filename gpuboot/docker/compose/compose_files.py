"""What a compose project consists of on a host."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Reload = Literal["SIGHUP", "restart"]
Object = dict[str, Any]

FOLDER = "/opt/gpuboot"  # of the compose project on a host
NAME = "gpuboot"  # of the project; Docker puts it before names of containers and networks
COMPOSE = "compose.yaml"


@dataclass(frozen=True)
class File:
    """A file of the project.

    + path: below the project's folder
    + text: its content; None: random characters, written once where there is no such file
    + owner: user and group that own it: those that the container runs as
    + service: the service that reads it only at its start or when it is reloaded; "" for none
    """

    path: str
    text: str | None
    mode: str = "644"
    owner: int = 0
    service: str = ""

    def __repr__(self) -> str:
        return f"File({self.path!r})"  # the text may be secret

    @property
    def sha256(self) -> str:
        return hashlib.sha256((self.text or "").encode()).hexdigest()


@dataclass(frozen=True)
class Project:
    """All that a host has to have.

    + files: the compose file first
    + folders: folders for data and secrets, below the project's folder -> user and group that
      own them, and alone may look into them
    + reloads: how a service reloads its files
    """

    folder: str
    services: tuple[str, ...]
    files: tuple[File, ...]
    folders: Mapping[str, int]
    reloads: Mapping[str, Reload]

    def digest(self, service: str) -> str:
        """Digest of the files that a service reads only when it is reloaded; "" for none."""
        files = [file for file in self.files if file.service == service]
        text = "\n".join(f"{file.path} {file.sha256}" for file in files if file.text is not None)
        return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def without_variables(value: Any) -> Any:
    """A value in which compose finds no variables: each `$` is doubled."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {key: without_variables(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [without_variables(item) for item in value]
    return value


def bind_mount(source: str, target: str, read_only: bool = True, **options: Any) -> Object:
    """A folder of the host in a container. It must exist: Docker is not to make it as root."""
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": read_only,
        "bind": {"create_host_path": False, **options},
    }
