"""What this machine's apt and dpkg print when they fail, and what is said of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploys.parts.packages import apt
from gpuboot.hosts import transient
from gpuboot.hosts.failures import explain
from gpuboot.mirror import release
from tests.unit import apt_host
from tests.unit.apt_host import Host, Key, Repository

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)

KEY = "/etc/apt/keyrings/k.asc"
# German, as far as a program lets itself be told: this locale is on every machine
LANGUAGE = {"LC_ALL": "C.UTF-8", "LANGUAGE": "de"}


class Site:
    """A host with a key, and a repository that the key signs."""

    def __init__(self, host: Host, web: str) -> None:
        self.host, self.web = host, web
        self.key = Key(host.path("key"))
        self.repository("good", {"tool": "1"})
        host.write(KEY, self.key.public())
        self.sources("good")

    def repository(self, name: str, packages: dict[str, str], fields: str = "") -> Repository:
        created = Repository(self.host.path(f"www/{name}"), self.key)
        created.publish(packages, fields)
        return created

    def sources(self, *names: str, key: str = KEY) -> None:
        lines = (f"deb [signed-by={key}] {self.web}/{name} /\n" for name in names)
        self.host.write("/etc/apt/sources.list", "".join(lines))

    def release(self, **fields: str) -> None:
        """Sign the index of `good` with other fields."""
        folder = self.host.path("www/good")
        index = {"Packages": (folder / "Packages").read_bytes()}
        text = release.text({"Origin": "x", "Architectures": "amd64", **fields}, index)
        (folder / "InRelease").write_bytes(self.key.clearsigned(text))

    def update(self) -> str:
        return self._failed(apt.READ_INDICES)

    def install(self, *words: str) -> str:
        assert self.host.run(apt.READ_INDICES).returncode == 0
        versions = {name: version for name, _, version in (word.partition("=") for word in words)}
        command = apt.install(versions).get_raw_value()
        return self._failed(command.replace("apt-get ", "apt-get -s ", 1))

    def pin(self, text: str) -> None:
        self.host.write("/etc/apt/preferences.d/vendor", text)

    def _failed(self, command: str) -> str:
        result = self.host.run(command, umask=0o77, **LANGUAGE)
        assert result.returncode != 0, result.stdout
        assert not transient.reason(result.stdout + result.stderr)
        explanation = explain(result.stdout + result.stderr)
        assert explanation is not None, result.stdout + result.stderr
        return explanation.cause


@pytest.fixture
def site() -> Iterator[Site]:
    with apt_host.host() as host, apt_host.served(host.path("www")) as web:
        yield Site(host, web)


def test_a_good_repository_is_read(site: Site) -> None:
    assert site.host.run(apt.READ_INDICES, umask=0o77).returncode == 0


def test_an_expired_key(site: Site) -> None:
    old = Key(site.host.path("old"), "2025-01-01", at="20240101T000000!")
    Repository(site.host.path("www/old"), old).publish({"tool": "1"}, at="20240601T000000!")
    site.host.write(KEY, old.public())
    site.sources("old")
    assert site.update() == "the key that signs a repository has expired"


@pytest.mark.parametrize("path", [KEY, "/etc/apt/keyrings/none.asc"])
def test_another_key(site: Site, path: str) -> None:
    site.host.write(KEY, Key(site.host.path("other")).public())
    site.sources("good", key=path)
    assert site.update() == "a repository is signed by a key that apt does not have for it"


def test_a_key_that_is_closed_to_apt(site: Site) -> None:
    site.host.path(KEY).chmod(0o600)
    assert site.update().startswith("apt's own user, _apt, cannot read a key")


def test_a_folder_that_is_closed_to_apt_is_as_if_it_had_no_key(site: Site) -> None:
    site.host.path("/etc/apt/keyrings").chmod(0o700)
    assert site.update() == "a repository is signed by a key that apt does not have for it"


def test_two_keys_for_one_repository(site: Site) -> None:
    site.host.write(
        "/etc/apt/sources.list.d/other.list", f"deb [signed-by=/other.asc] {site.web}/good /\n"
    )
    assert site.update().startswith("two entries of apt's sources name one repository")


def test_a_line_that_is_none(site: Site) -> None:
    site.host.write("/etc/apt/sources.list.d/other.list", f"deb {site.web}/good\n")
    assert site.update().startswith("apt cannot read a file of its sources")


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"Date": "Mon, 01 Aug 2095 00:00:00 UTC"}, "a repository's index is of a time"),
        (
            {
                "Date": "Sun, 01 Aug 2021 00:00:00 UTC",
                "Valid-Until": "Mon, 01 Aug 2022 00:00:00 UTC",
            },
            "a repository's index is older",
        ),
    ],
)
def test_the_time_of_an_index(site: Site, fields: dict[str, str], cause: str) -> None:
    site.release(**fields)
    assert site.update().startswith(cause)


def test_an_address_without_a_repository(site: Site) -> None:
    site.sources("none")
    assert site.update() == "there is no repository at the address of a source"


def test_a_login_page_in_its_place(site: Site) -> None:
    site.host.write("www/good/InRelease", "<html>please log in</html>\n")
    assert site.update().startswith("something between the host and a repository")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["nothing"], "no repository of the host has a package of that name"),
        (["tool=9"], "the repositories have no such version"),
    ],
)
def test_what_no_repository_has(site: Site, words: list[str], cause: str) -> None:
    assert site.install(*words) == cause


def two_versions(site: Site) -> None:
    site.repository("one", {"lib": "1"})
    site.repository("two", {"lib": "2"})
    site.repository("top", {"top": "2"}, "Depends: lib (= 2)\n")
    site.sources("one", "two", "top")


def test_a_pin_of_another_vendor(site: Site) -> None:
    two_versions(site)
    site.pin("Package: lib\nPin: version 1\nPin-Priority: 1001\n")
    assert site.install("top=2").startswith("a package is held, or pinned")


def test_a_hold(site: Site) -> None:
    two_versions(site)
    site.host.write(
        "/var/lib/dpkg/status",
        "Package: lib\nStatus: hold ok installed\nVersion: 1\nArchitecture: amd64\n"
        "Maintainer: x\nDescription: x\n",
    )
    assert site.install("top=2").startswith("a package is held, or pinned")


def test_a_pin_that_forbids(site: Site) -> None:
    two_versions(site)
    site.pin("Package: lib\nPin: release *\nPin-Priority: -1\n")
    assert site.install("top=2").startswith("a package that is needed can be had from no repo")
    assert site.install("lib").startswith("apt may install no version")


def test_packages_that_do_not_go_together(site: Site) -> None:
    site.repository("a", {"a": "1"}, "Conflicts: b\n")
    site.repository("b", {"b": "1"})
    site.sources("a", "b")
    assert site.install("a=1", "b=1").startswith("packages do not go together")


def deb(folder: Path, name: str) -> Path:
    """A package with the file /usr/share/tool."""
    tree = folder / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    )
    (tree / "usr/share").mkdir(parents=True)
    (tree / "usr/share/tool").write_text("x" * 1_000_000)
    package = folder / f"{name}.deb"
    subprocess.run(
        ["dpkg-deb", "--build", str(tree), str(package)], check=True, capture_output=True
    )
    return package


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb here")
def test_two_packages_with_one_file(site: Site, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("updates", "info", "triggers"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg = f"LC_ALL=C dpkg --root={root} --force-not-root --force-script-chrootless --log=/dev/null"
    assert site.host.run(f"{dpkg} -i {deb(tmp_path, 'first')}").returncode == 0
    result = site.host.run(f"{dpkg} -i {deb(tmp_path, 'second')}")
    explanation = explain(result.stdout + result.stderr)
    assert explanation is not None
    assert explanation.cause == "two packages bring the same file"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # Debian 13, as people have posted it
        (
            "Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on "
            "F2205FB121DF142B31450865A3BA514562A835DB is bad:            The primary key is not "
            "live   because: Expired on 2026-01-29T17:10:45Z",
            "has expired",
        ),
        (
            "Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on "
            "BF2ADE6BCDA14B4DDFCEF2ECB3E6A0ECC93E441A is not bound: No binding signature "
            "at time 2026-01-10T18:24:29Z   because: Policy rejected non-revocation signature "
            "(PositiveCertification) requiring second pre-image resistance   because: SHA1 is not "
            "considered secure since 2026-02-01T00:00:00Z",
            "rests on SHA-1",
        ),
        (
            "Sub-process /usr/bin/sqv returned an error code (1), error message is: Missing key "
            "9DC858229FC7DD38854AE2D88D81803C0EBFCD88, which is needed to verify signature.",
            "does not have for it",
        ),
    ],
)
def test_the_words_of_sqv(text: str, cause: str) -> None:
    explanation = explain(text)
    assert explanation is not None
    assert cause in explanation.cause
