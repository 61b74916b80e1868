"""A repository is configured on a host that had a life before, with real apt."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit import apt_host
from tests.unit.apt_host import Key
from tests.unit.repository_site import KEY, PATH, Site

pytestmark = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)

GUIDE = "/etc/apt/sources.list.d/vendors.list"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with apt_host.host() as host, apt_host.served(host.path("www")) as web:
        yield Site(host, web, monkeypatch)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_apt_can_read_it_whatever_the_umask(site: Site, umask: int) -> None:
    assert site.run(umask) == ""
    host = site.host
    assert (mode(host.path(PATH)), mode(host.path(KEY))) == (0o644, 0o644)
    assert mode(host.path("/etc/apt/keyrings")) == mode(host.path("/run/gpuboot")) == 0o755
    assert "Candidate: 29.1" in host.run("apt-cache policy docker-ce").stdout
    assert host.run("apt-get update -q -o APT::Update::Error-Mode=any").returncode == 0
    assert list(host.path("/run/gpuboot").iterdir()) == []
    assert site.run() == ""
    assert (site.noops, site.changes) == (1, [])


@pytest.mark.parametrize(
    "line",
    [
        "deb [signed-by=/etc/apt/keyrings/theirs.gpg] WEB/docker /",
        "deb [arch=amd64 signed-by=/etc/apt/keyrings/theirs.gpg] WEB/docker/ /",
        "deb WEB/docker /",
        "deb-src [signed-by=/etc/apt/keyrings/theirs.gpg] WEB/docker /",
    ],
)
def test_an_entry_of_the_same_repository_becomes_a_comment(site: Site, line: str) -> None:
    line = site.host.below(line.replace("WEB", site.web))
    before = f"# {line}\ndeb [trusted=yes] http://127.0.0.2:1/other /\n{line}\n# end\n"
    site.host.write(GUIDE, before)
    site.host.path(GUIDE).chmod(0o640)
    assert site.run(0o077) == ""
    after = site.host.path(GUIDE)
    assert after.read_text() == before.replace(f"\n{line}\n", f"\n# {line}\n")
    assert mode(after) == 0o640
    assert Path(f"{after}.gpuboot.save").read_text() == before
    result = site.host.run("apt-get indextargets")
    assert (result.returncode, result.stderr) == (0, ""), "apt is silent of the copy"
    (change,) = [item for item in site.changes if item.subject == f"file {after}"]
    assert change.field == "lines 3 to 3"
    assert change.diff == (f"-{line}", f"+# {line}")
    assert site.run() == ""
    assert site.noops == 1


def test_a_stanza_keeps_what_is_not_ours(site: Site) -> None:
    path = "/etc/apt/sources.list.d/theirs.sources"
    stanza = (
        f"Types: deb\nURIs: http://127.0.0.2:1/other {site.web}/docker\nSuites: /\n"
        "Signed-By: /etc/apt/keyrings/theirs.gpg\n"
    )
    third = "Types: deb\nURIs: http://127.0.0.2:1/third\nSuites: /\n"
    # the last line of the file has no end
    site.host.write(path, f"{third}\n{stanza}".rstrip())
    assert site.run() == ""
    result = site.host.run(
        "apt-get indextargets -o APT::Get::IndexTargets::ReleaseInfo=false --format '$(BASE_URI)'"
    )
    assert sorted(result.stdout.split()) == sorted(
        ["http://127.0.0.2:1/other/", "http://127.0.0.2:1/third/", f"{site.web}/docker/"]
    )
    assert site.run() == ""
    assert site.noops == 1


def test_two_entries_that_apt_already_refuses_are_one_afterwards(site: Site) -> None:
    line = f"deb [signed-by=/a.gpg] {site.web}/docker /\n"
    site.host.write(GUIDE, line + line.replace("/a.gpg", "/b.gpg"))
    assert site.host.run("apt-get indextargets").returncode != 0
    assert site.run() == ""
    assert site.host.run("apt-get update -q").returncode == 0


def test_a_file_that_is_a_link_stays_one(site: Site) -> None:
    target = site.host.path("/etc/theirs.list")
    target.write_text(f"deb [signed-by=/a.gpg] {site.web}/docker /\n")
    site.host.path(GUIDE).symlink_to("../../theirs.list")
    assert site.run() == ""
    assert site.host.path(GUIDE).is_symlink()
    assert target.read_text().startswith("# deb")


def test_what_apt_refuses_elsewhere_changes_nothing(site: Site) -> None:
    site.host.write("/etc/apt/sources.list.d/broken.list", "deb http://127.0.0.2:1\n")
    site.host.write(GUIDE, f"deb {site.web}/docker /\n")
    before = site.etc()
    failed = site.run()
    assert (
        "apt refuses the sources of this host with these repositories among them (docker)" in failed
    )
    broken = site.host.path("/etc/apt/sources.list.d/broken.list")
    assert f"Malformed entry 1 in list file {broken}" in failed
    assert "remedy: correct the file" in failed
    assert site.etc() == before


def test_a_wrong_signature_changes_nothing(site: Site) -> None:
    site.host.write(GUIDE, f"deb {site.web}/docker /\n")
    foreign_repository = apt_host.Repository(
        site.host.path("www/docker"), Key(site.host.path("other"))
    )
    foreign_repository.publish({"docker-ce": "666"})
    before = site.etc()
    assert "NO_PUBKEY" in site.run()
    assert site.etc() == before
    assert "666" not in site.host.run("apt-cache policy docker-ce").stdout


def test_another_key_changes_nothing(site: Site) -> None:
    before = site.etc()
    wrong_key = replace(site.repository, fingerprint="0" * 40)
    assert "is not the key that is pinned" in site.run(0o22, wrong_key)
    assert site.etc() == before


def test_a_step_that_fails_puts_back_what_was_there(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.host.write(GUIDE, f"deb {site.web}/docker /\n")
    before = site.etc()
    site.repository = replace(site.repository, text=f"{site.repository.text}\n")
    tool = site.host.path("/bin")
    tool.mkdir()
    (tool / "install").write_text(
        f"#!/bin/sh\ncase $4 in {site.host.root}/etc/*) echo full >&2; exit 1;; esac\n"
        'exec /usr/bin/install "$@"\n'
    )
    (tool / "install").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool}:{os.environ['PATH']}")
    failed = site.run()
    assert "full" in failed
    assert "they are as before" in failed
    after = site.etc()
    assert after.pop("sources.list.d/vendors.list.gpuboot.save")
    assert after == before


def test_a_key_with_a_later_end_takes_the_place_of_ours(site: Site) -> None:
    key = site.publisher.key
    key.extend("20d")
    site.publish_key()
    assert site.run() == ""
    assert site.run() == ""
    assert site.noops == 1, "the publisher has none with a later end"
    key.extend("900d")
    site.publish_key()
    assert site.run() == ""
    assert [change.field for change in site.changes] == ["end of its key"]
    assert site.changes[0].old < site.changes[0].new
    assert site.host.path(KEY).read_bytes() == key.public()
    assert site.run() == ""
    assert site.noops == 2


def test_a_stanza_with_a_password_is_refused(site: Site) -> None:
    site.host.write(
        "/etc/apt/sources.list.d/x.sources",
        f"Types: deb\nURIs: {site.web}/docker http://me:word@127.0.0.2:1/\nSuites: /\n",
    )
    before = site.etc()
    assert "and a password" in site.run()
    assert site.changes == []
    assert site.etc() == before


def test_the_copy_beside_is_the_file_before_the_first_change(site: Site) -> None:
    site.host.write(GUIDE, f"deb {site.web}/docker /\n# more\n")
    first = site.host.path(GUIDE).read_text()
    assert site.run() == ""
    site.host.write(GUIDE, f"deb {site.web}/docker/ /\n")
    assert site.run() == ""
    assert Path(f"{site.host.path(GUIDE)}.gpuboot.save").read_text() == first
    assert site.host.path(GUIDE).read_text() == f"# deb {site.web}/docker/ /\n"


def test_several_are_added_by_one_read_of_their_indices(site: Site) -> None:
    second = site.add_publisher("toolkit")
    assert site.run(0o22, site.repository, second) == ""
    assert site.reads == 1
    assert [item.subject for item in site.changes if item.field == "source"] == [
        "apt repository docker",
        "apt repository toolkit",
    ]
    policy = site.host.run("apt-cache policy docker-ce toolkit-tool").stdout
    assert "Candidate: 29.1" in policy
    assert "Candidate: 1.0" in policy
    assert list(site.host.path("/run/gpuboot").iterdir()) == []
    assert site.run(0o22, site.repository, second) == ""
    assert (site.noops, site.reads) == (1, 0)
    moved = replace(second, text=f"{second.text}\n")
    assert site.run(0o22, site.repository, moved) == ""
    assert [item.subject for item in site.changes] == ["apt repository toolkit"]


def test_where_one_of_several_is_wrong_none_is_added(site: Site) -> None:
    before = site.etc()
    second = site.add_publisher("toolkit", key=site.publisher.key)
    failed = site.run(0o22, site.repository, second)
    assert "NO_PUBKEY" in failed
    assert site.etc() == before
    assert "29.1" not in site.host.run("apt-cache policy docker-ce").stdout


def test_a_stanza_with_several_of_ours_loses_all_of_them(site: Site) -> None:
    second = site.add_publisher("toolkit")
    stanza = (
        f"Types: deb\nURIs: {site.web}/docker {site.web}/toolkit http://127.0.0.2:1/other\n"
        "Suites: /\n"
    )
    site.host.write("/etc/apt/sources.list.d/theirs.sources", stanza)
    assert site.run(0o22, site.repository, second) == ""
    result = site.host.run(
        "apt-get indextargets -o APT::Get::IndexTargets::ReleaseInfo=false --format '$(BASE_URI)'"
    )
    assert sorted(result.stdout.split()) == sorted(
        ["http://127.0.0.2:1/other/", f"{site.web}/docker/", f"{site.web}/toolkit/"]
    )
    assert site.run(0o22, site.repository, second) == ""
    assert site.noops == 1
