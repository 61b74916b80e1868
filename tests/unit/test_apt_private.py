"""The private copy of a host's apt sources, with real apt."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deploys.parts.packages import apt_private
from deploys.parts.packages.apt_private import OPTIONS, private_key
from gpuboot.hosts.apt_sources import Edit
from tests.unit import apt_host
from tests.unit.apt_host import Host, Key, Repository

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)

OWN_SOURCE = "/etc/apt/sources.list.d/gpuboot-docker.sources"
KEY = "/etc/apt/keyrings/gpuboot-docker.asc"
UPDATE = f"apt-get {OPTIONS} update -q -o APT::Update::Error-Mode=any"


@pytest.fixture
def host() -> Iterator[Host]:
    with apt_host.host() as created:
        yield created


@pytest.fixture
def web(host: Host) -> Iterator[str]:
    with apt_host.served(host.path("www")) as address:
        yield address


@pytest.fixture
def used(host: Host, web: str) -> Repository:
    """A host that has read a repository of its own, and a hook as Ubuntu's images have."""
    repository = Repository(host.path("www/own"), Key(host.path("own-key")))
    repository.publish({"own-tool": "1.0"})
    host.write("/etc/apt/keyrings/own.asc", repository.key.public())
    host.write("/etc/apt/sources.list", "# two lines\n# of comments\n")
    host.write(
        "/etc/apt/sources.list.d/own.list",
        f"deb [signed-by=/etc/apt/keyrings/own.asc] {web}/own /\ndeb http://127.0.0.2:1/gone /\n",
    )
    host.write("/etc/apt/sources.list.d/own.list.save", "deb http://127.0.0.1:1/save /\n")
    host.write(
        "/etc/apt/apt.conf.d/20hook",
        f'APT::Update::Post-Invoke {{ "touch {host.root}/hook-ran"; }};\n',
    )
    host.run("apt-get update -q")
    (host.root / "hook-ran").unlink(missing_ok=True)
    return repository


def files(host: Host) -> dict[str, tuple[int, int, float]]:
    """Every file outside of /run, www and keys, with mode, owner and time."""
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_mtime)
        for top in ("etc", "var")
        for path in sorted(host.path(top).rglob("*"))
    }


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_planned_source_is_tried_and_nothing_else_changes(
    host: Host, web: str, used: Repository, umask: int
) -> None:
    new = Repository(host.path("www/docker"), Key(host.path("new-key")))
    new.publish({"docker-ce": "29.1"})
    before = files(host)
    text = f"Types: deb\nURIs: {web}/docker\nSuites: /\nSigned-By: {KEY}\n"
    removal = Edit("/etc/apt/sources.list.d/own.list", 2, 2)
    script = apt_private.prepare({OWN_SOURCE: text}, [removal], keys=[KEY])
    assert host.run(script, umask=umask).returncode == 0
    host.write(private_key(KEY), new.key.public())
    result = host.run(UPDATE, umask=umask)
    assert result.returncode == 0, result.stderr
    assert "own/Packages" not in result.stdout, "what the host has read is not read again"
    simulated = host.run(f"apt-get {OPTIONS} -s install docker-ce own-tool", umask=umask)
    assert "Inst docker-ce (29.1" in simulated.stdout, simulated.stderr
    assert "Inst own-tool (1.0" in simulated.stdout
    versions = host.run(f"apt-cache {OPTIONS} madison docker-ce").stdout
    assert versions.split()[:3] == ["docker-ce", "|", "29.1"]
    assert "Candidate: 29.1" in host.run(f"apt-cache {OPTIONS} policy docker-ce").stdout
    assert files(host) == before
    assert not (host.root / "hook-ran").exists()
    assert os.listdir(host.path("/run")) == ["gpuboot"]
    assert os.listdir(host.path("/run/gpuboot")) == ["apt"]
    assert host.run(apt_private.REMOVE).returncode == 0
    assert os.listdir(host.path("/run/gpuboot")) == []


def test_a_newer_index_is_read_into_the_copy_alone(host: Host, web: str, used: Repository) -> None:
    used.publish({"own-tool": "2.0"})
    before = files(host)
    assert host.run(apt_private.prepare({})).returncode == 0
    host.run(f"apt-get {OPTIONS} update -q")
    assert "2.0" in host.run(f"apt-cache {OPTIONS} policy own-tool").stdout
    assert "2.0" not in host.run("apt-cache policy own-tool").stdout
    assert files(host) == before


def test_apt_itself_refuses_a_set_that_does_not_go_together(
    host: Host, web: str, used: Repository
) -> None:
    text = f"Types: deb\nURIs: {web}/own/\nSuites: /\nSigned-By: {KEY}\n"
    assert host.run(apt_private.prepare({OWN_SOURCE: text}, keys=[KEY])).returncode == 0
    result = host.run(f"apt-get {OPTIONS} indextargets")
    assert result.returncode != 0
    assert "Conflicting values set for option Signed-By" in result.stderr
    assert host.run("apt-get indextargets").returncode == 0


def test_sources_with_passwords_are_for_root_alone(host: Host, used: Repository) -> None:
    host.write("/etc/apt/sources.list.d/pro.list", "deb http://me:word@h.example/x /\n")
    host.path("/etc/apt/sources.list.d/pro.list").chmod(0o600)
    assert host.run(apt_private.prepare({})).returncode == 0
    copied = host.path("/run/gpuboot/apt/sources.list.d/pro.list")
    assert copied.stat().st_mode & 0o777 == 0o600
