"""A host, a publisher's repository by HTTP, and the operation that configures it, with real apt."""

from __future__ import annotations

from typing import Any

import pytest
from pyinfra.api.command import FunctionCommand, StringCommand

from deploys.engine import changes
from deploys.parts.packages import repository_operations as repositories
from deploys.parts.packages.fact import Repository as Fact
from gpuboot.hosts.repositories import Repository
from tests.unit import apt_host
from tests.unit.apt_host import Host, Key

PATH = "/etc/apt/sources.list.d/gpuboot-docker.sources"
KEY = "/etc/apt/keyrings/gpuboot-docker.asc"


class Site:
    """A host, a publisher's repository by HTTP, and the operation whose commands are run."""

    def __init__(self, host: Host, web: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host, self.web, self.noops = host, web, 0
        self.publisher = apt_host.Repository(host.path("www/docker"), Key(host.path("key")))
        self.publisher.publish({"docker-ce": "29.1"})
        self.publish_key()
        self.repository = self.of("docker", self.publisher)
        monkeypatch.setattr(repositories, "read", self._read)
        monkeypatch.setattr(repositories, "host", self)
        monkeypatch.setattr(changes, "record", self._record)

    def of(self, name: str, publisher: apt_host.Repository) -> Repository:
        key = KEY.replace("docker", name)
        text = (
            f"Types: deb\nURIs: {self.web}/{name}/\nSuites: /\nArchitectures: amd64\n"
            f"Signed-By: {key}\n"
        )
        return Repository(
            name=name,
            manager="apt",
            url=f"{self.web}/{name}/",
            path=self.host.below(PATH.replace("docker", name)),
            text=self.host.below(text),
            key_path=self.host.below(key),
            key_url=f"{self.web}/{name}.asc",
            fingerprint=publisher.key.fingerprint,
        )

    def add_publisher(self, name: str, key: Key | None = None) -> Repository:
        """A second repository, whose index is signed by `key`, or by its own."""
        publisher = apt_host.Repository(
            self.host.path(f"www/{name}"), Key(self.host.path(f"key-{name}"))
        )
        self.host.write(f"www/{name}.asc", publisher.key.public())
        repository = self.of(name, publisher)
        publisher.key = key or publisher.key
        publisher.publish({f"{name}-tool": "1.0"})
        return repository

    def publish_key(self) -> None:
        self.host.write("www/docker.asc", self.publisher.key.public())

    def noop(self, text: str) -> None:
        self.noops += 1

    def _record(self, *changes: Any) -> None:
        self.changes = list(changes)

    def _read(self, fact: type[Fact], **arguments: Any) -> Any:
        result = self.host.run(fact().bare_command(arguments), umask=0o77)
        assert result.returncode == 0, result.stderr
        return fact().value(result.stdout.splitlines())

    def run(self, umask: int = 0o22, *planned: Repository) -> str:
        """Run the operation; what it printed where it failed, else ""."""
        self.changes, self.reads = [], 0
        for command in repositories.configured._inner(list(planned) or [self.repository]):
            if isinstance(command, FunctionCommand):
                text = command.args[0]
                if len(command.args) == 1:  # a refusal
                    return str(text[0] if isinstance(text, list) else text)
            else:
                assert isinstance(command, StringCommand)
                text = command.get_raw_value()
            self.reads += "apt-get" in str(text) and " update " in str(text)
            result = self.host.run(str(text), umask=umask, LC_ALL="C.UTF-8", LANGUAGE="de")
            if result.returncode:
                return result.stdout + result.stderr
        return ""

    def etc(self) -> dict[str, str]:
        top = self.host.path("/etc/apt")
        return {
            str(path.relative_to(top)): path.read_text()
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }
