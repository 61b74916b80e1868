"""What a host has of a repository: the fact's script with real apt and gpg, in each POSIX shell."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from deploys.parts.packages.fact import Repository as Fact
from gpuboot.hosts.apt_sources import Edit, replaced
from gpuboot.hosts.repository_state import RepositoryState, later_key
from tests.unit import apt_host
from tests.unit.apt_host import Host, Key

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)

PATH = "/etc/apt/sources.list.d/gpuboot-x.sources"
KEY = "/etc/apt/keyrings/gpuboot-x.asc"
SHELLS = [
    shell for shell in ("dash", "bash --posix", "busybox sh") if shutil.which(shell.split()[0])
]


@pytest.fixture
def host() -> Iterator[Host]:
    with apt_host.host() as scratch_host:
        yield scratch_host


def fact(
    host: Host, url: str, suite: str = "/", shell: str = "dash", **options: Any
) -> RepositoryState:
    components = "" if suite == "/" else "Components: stable\n"
    text = (
        f"Types: deb\nURIs: {url}\nSuites: {suite}\n{components}Architectures: amd64\n"
        f"Signed-By: {KEY}\n"
    )
    server = url.split("/")[2]
    arguments = {"key_url": "http://127.0.0.1:1/k", **options}
    script = Fact().bare_command(
        {"path": PATH, "key": KEY, "server": server, "text": text, **arguments}
    )
    result = host.run(script, shell, umask=0o77)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    return Fact().value(result.stdout.splitlines())


def edits(host: Host, url: str, suite: str = "/", shell: str = "dash") -> list[Edit]:
    state = fact(host, url, suite, shell)
    replacements = [edit for _, edit in replaced(state.entries, state.own)]
    prefix = f"{host.root}/etc/apt/"
    return [
        Edit(edit.path.removeprefix(prefix), edit.first, edit.last, edit.text)
        for edit in replacements
    ]


TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/amd64/"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
DOCKER = "https://download.docker.com/linux/ubuntu"
KUBERNETES = "https://pkgs.k8s.io/core:/stable:/v1.36/deb/"
# its last line has no end
STANZAS = f"""\
# vendors
Types: deb
URIs: https://other.example/$(ARCH)
Suites: /

# Docker
Types: deb deb-src
uris: {DOCKER}
Suites: noble
Components: stable
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQ
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: {DOCKER}
Suites: noble
Components: stable

Types: deb
URIs: https://third.example/d
 {DOCKER}/
Suites: noble jammy
Components: stable
Signed-By: /k.gpg"""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("url", "suite", "line"),
    [
        # NVIDIA's own guide
        (
            TOOLKIT, "/",
            "deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] "
            "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /",
        ),
        # without its last slash; by the other scheme; another case; the port and a dot written out
        (CUDA, "/", f"deb [signed-by=/k.gpg] {CUDA[:-1]} /"),
        (CUDA, "/", f"deb {CUDA.replace('https', 'http')} /"),
        (CUDA, "/", f"deb [trusted=yes] {CUDA.replace('developer', 'Developer')} /"),
        (KUBERNETES, "/", f"deb {KUBERNETES} ./"),
        (KUBERNETES, "/", "deb https://pkgs.k8s.io:443/core:/stable:/v1.36/deb/ /"),
        (TOOLKIT, "/", "deb https://nvidia.github.io/libnvidia-container/stable/deb amd64/"),
        # options, other components, sources: apt holds one key for all of a suite
        (DOCKER, "noble", f"deb [arch=amd64 signed-by=/etc/d.gpg] {DOCKER} noble stable"),
        (DOCKER, "noble", f"  deb\t{DOCKER}/  noble  test nightly # by hand"),
        (DOCKER, "noble", f"deb-src {DOCKER} noble stable"),
    ],
)  # fmt: skip
def test_a_line_of_the_same_repository_goes(
    host: Host, shell: str, url: str, suite: str, line: str
) -> None:
    host.write(
        "/etc/apt/sources.list.d/vendors.list",
        f"# {line}\ndeb http://other.example/a b c\n{line}\ndeb http://other.example/x y z\n",
    )
    assert edits(host, url, suite, shell) == [Edit("sources.list.d/vendors.list", 3, 3)]


@pytest.mark.parametrize(
    ("url", "suite", "line"),
    [
        (KUBERNETES, "/", "deb https://pkgs.k8s.io/core:/stable:/v1.35/deb/ /"),
        (DOCKER, "noble", f"deb {DOCKER} jammy stable"),
        (DOCKER, "noble", "deb https://download.docker.com/linux/debian noble stable"),
        (CUDA, "/", f"deb {CUDA.replace('2404', '2204')} /"),
        (CUDA, "/", f"# deb {CUDA} /"),
        (CUDA, "/", f"deb http://mirror.example/{CUDA[8:]} /"),
    ],
)
def test_a_line_of_another_repository_stays(host: Host, url: str, suite: str, line: str) -> None:
    host.write("/etc/apt/sources.list", f"{line}\n")
    assert edits(host, url, suite) == []


@pytest.mark.parametrize(
    "name", ["x.list.save", "x.disabled", "x.list.distUpgrade", "x~.list", "x"]
)
def test_files_that_apt_does_not_read_stay(host: Host, name: str) -> None:
    host.write(f"/etc/apt/sources.list.d/{name}", f"deb {CUDA} /\n")
    assert edits(host, CUDA) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_stanzas(host: Host, shell: str) -> None:
    host.write("/etc/apt/sources.list.d/all.sources", STANZAS)
    name = "sources.list.d/all.sources"
    remainder = (
        "URIs: https://third.example/d\nSuites: noble jammy\n"
        "Types: deb\nComponents: stable\nSigned-By: /k.gpg\n\n"
        f"URIs: {DOCKER}/\nSuites: jammy\nTypes: deb\nComponents: stable\nSigned-By: /k.gpg\n"
    )
    assert edits(host, DOCKER, "noble", shell) == [Edit(name, 6, 15), Edit(name, 23, 28, remainder)]


def test_a_password_stays_on_the_host(host: Host) -> None:
    host.write(
        "/etc/apt/sources.list", "deb https://me:secret@pkgs.k8s.io/core:/stable:/v1.36/deb/ /\n"
    )
    state = fact(host, KUBERNETES)
    assert [entry.text for entry in state.entries] == [
        "deb https://***@pkgs.k8s.io/core:/stable:/v1.36/deb/ /\n"
    ]
    assert "secret" not in repr(state)
    host.write(
        "/etc/apt/sources.list.d/x.sources",
        f"Types: deb\nURIs: {KUBERNETES} https://me:secret@other.example/\nSuites: /\n",
    )
    state = fact(host, KUBERNETES)
    with pytest.raises(ValueError, match=r"lines 1-3 of .*/x.sources have .* and a password"):
        list(replaced(state.entries, state.own))


def test_entries_that_contradict_each_other_are_all_seen(host: Host) -> None:
    host.write(
        "/etc/apt/sources.list.d/docker.list",
        f"deb [signed-by=/a.gpg] {DOCKER} noble stable\n"
        f"deb [signed-by=/b.gpg] {DOCKER} noble stable\n",
    )
    assert host.run("apt-get indextargets").returncode != 0
    name = "sources.list.d/docker.list"
    assert edits(host, DOCKER, "noble") == [Edit(name, 1, 1), Edit(name, 2, 2)]


def test_nothing_of_it_remains(host: Host) -> None:
    host.write("/etc/apt/sources.list", f"deb {CUDA} /\n")
    host.write(KEY, Key(host.path("k")).public())
    edits(host, CUDA)
    assert list(host.path("/run/gpuboot").iterdir()) == []
    assert host.path("/run/gpuboot").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("shell", SHELLS)
def test_the_end_of_a_key(host: Host, shell: str) -> None:
    key = Key(host.path("k"), "20d")
    host.write(KEY, key.public())
    key.extend("900d")
    host.write("www/key", key.public())
    with apt_host.served(host.path("www")) as address:
        state = fact(host, CUDA, shell=shell, key_url=f"{address}/key")
        assert list(state.key_ends) == list(state.offered_ends) == [key.fingerprint]
        assert later_key(state)
        host.write(KEY, key.public())
        state = fact(host, CUDA, shell=shell, key_url=f"{address}/key")
        assert (len(state.key_ends), state.offered_ends) == (1, {}), "nobody asks before it is near"
        assert not later_key(state)


def test_a_key_that_ended_is_asked_for_as_well(host: Host) -> None:
    old = Key(host.path("k"), "2025-01-01", at="20240101T000000!")
    host.write(KEY, old.public())
    host.write("www/key", old.public())
    with apt_host.served(host.path("www")) as address:
        state = fact(host, CUDA, key_url=f"{address}/key")
        assert state.key_ends == state.offered_ends
        assert not later_key(state), "the publisher has no newer one"
        assert fact(host, CUDA, key_url=f"{address}/gone").offered_ends == {}


def test_a_key_that_never_ends(host: Host) -> None:
    key = Key(host.path("k"))
    host.write(KEY, key.public())
    assert fact(host, CUDA).key_ends == {key.fingerprint: 0}
    assert fact(host, CUDA, by_digest=True).key_ends == {}
