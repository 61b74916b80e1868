"""Packages and repositories as dpkg, gpgv and apt read them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from lab.build.debs import Deb, build_deb
from lab.mirror.apt_repository import build_repo
from lab.mirror.keys import SigningKey


def example(**changes: object) -> Deb:
    values: dict[str, object] = {
        "name": "demo",
        "version": "1:2.0-1",
        "depends": "libc6 (>= 2.34)",
        "description": "First line\nMore of it\n\nThe end",
        "files": {
            "/usr/bin/demo": "#!/bin/sh\n",
            "/etc/demo.conf": "key = value\n",
            "/usr/lib/libdemo.so": "-> libdemo.so.1",
            "/var/lib/demo/": "",
        },
        "modes": {"/etc/demo.conf": 0o640},
        "scripts": {"postinst": "#!/bin/sh\n", "triggers": "activate-noawait ldconfig\n"},
        "conffiles": ("/etc/demo.conf",),
    }
    return Deb(**{**values, **changes})  # type: ignore[arg-type]


def dpkg_deb(*arguments: str) -> str:
    result = subprocess.run(["dpkg-deb", *arguments], check=True, capture_output=True, text=True)
    return result.stdout


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey.ensure(tmp_path_factory.mktemp("k"), "tests <tests@gpuboot.invalid>")


def test_dpkg_reads_what_was_described(tmp_path: Path) -> None:
    deb = build_deb(example(), tmp_path)
    assert deb.name == "demo_2.0-1_amd64.deb"
    fields = dpkg_deb("-f", str(deb))
    assert "Version: 1:2.0-1\n" in fields
    assert "Depends: libc6 (>= 2.34)\n" in fields
    assert "Description: First line\n More of it\n .\n The end\n" in fields
    assert "Conflicts" not in fields
    members = {line.split()[5]: line.split() for line in dpkg_deb("-c", str(deb)).splitlines()}
    assert members["./usr/bin/demo"][0] == "-rwxr-xr-x"
    assert members["./etc/demo.conf"][0] == "-rw-r-----"
    assert members["./usr/lib/libdemo.so"][-1] == "libdemo.so.1"
    assert members["./var/lib/demo/"][0] == "drwxr-xr-x"
    assert {line[1] for line in members.values()} == {"root/root"}


def test_maintainer_scripts_and_conffiles(tmp_path: Path) -> None:
    deb = build_deb(example(), tmp_path)
    dpkg_deb("-e", str(deb), str(tmp_path / "control"))
    assert (tmp_path / "control/conffiles").read_text() == "/etc/demo.conf\n"
    assert os.access(tmp_path / "control/postinst", os.X_OK)
    assert not os.access(tmp_path / "control/triggers", os.X_OK)


def test_files_come_out_as_they_went_in(tmp_path: Path) -> None:
    source = tmp_path / "program"
    source.write_bytes(bytes(range(256)) * 5000 + b"x")
    source.chmod(0o755)
    deb = build_deb(example(files={"/opt/program": source}, conffiles=(), modes={}), tmp_path)
    dpkg_deb("-x", str(deb), str(tmp_path / "out"))
    out = tmp_path / "out/opt/program"
    assert out.read_bytes() == source.read_bytes()
    assert os.access(out, os.X_OK)


def test_equal_descriptions_give_equal_bytes(tmp_path: Path) -> None:
    first = build_deb(example(), tmp_path / "a").read_bytes()
    assert first == build_deb(example(), tmp_path / "b").read_bytes()
    assert first != build_deb(example(version="1:2.0-2"), tmp_path / "c").read_bytes()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"files": {"usr/bin/x": ""}, "conffiles": ()}, "not an absolute path"),
        ({"conffiles": ("/etc/other",)}, "/etc/other"),
    ],
)
def test_wrong_descriptions_are_refused(
    tmp_path: Path, changes: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        build_deb(example(**changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_repository_lists_every_version(tmp_path: Path, key: SigningKey) -> None:
    """apt finds the release before, which an upgrade starts from, beside the newest."""
    debs = [build_deb(example(version=f"1:2.0-{n}"), tmp_path / "debs") for n in (1, 2)]
    flat = build_repo(tmp_path / "repo", debs, key, flat=True).with_name("Packages")
    versions = [line for line in flat.read_text().splitlines() if line.startswith("Version:")]
    assert sorted(versions) == ["Version: 1:2.0-1", "Version: 1:2.0-2"]


def test_a_missing_source_file_leaves_no_package(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        build_deb(example(files={"/x": tmp_path / "absent"}, conffiles=()), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("flat", [True, False])
def test_a_repository_is_signed_and_its_hashes_hold(
    tmp_path: Path, key: SigningKey, flat: bool
) -> None:
    deb = build_deb(example(), tmp_path / "debs")
    repo = tmp_path / "repo"
    in_release = build_repo(repo, [deb], key, flat, suite="bookworm", component="main")
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(key.public(armor=False))
    gpgv = ["gpgv", "-q", "--keyring", str(keyring)]
    subprocess.run([*gpgv, str(in_release)], check=True, capture_output=True)
    release = in_release.with_name("Release")
    detached = [str(in_release.with_name("Release.gpg")), str(release)]
    subprocess.run([*gpgv, *detached], check=True, capture_output=True)
    digest, size, name = release.read_text().rpartition("SHA256:\n")[2].split()
    packages = in_release.with_name(name) if flat else in_release.parent / name
    content = packages.read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (digest, int(size))
    lines = content.decode().strip().splitlines()
    entry = dict(line.split(": ", 1) for line in lines if not line.startswith(" "))
    archive = repo / entry["Filename"]
    assert archive.read_bytes() == deb.read_bytes()
    assert entry["SHA256"] == hashlib.sha256(deb.read_bytes()).hexdigest()
    assert ("Codename: bookworm" in release.read_text()) is not flat


def test_another_keys_signature_is_not_valid(tmp_path: Path, key: SigningKey) -> None:
    foreign_key = SigningKey.ensure(tmp_path / "other", "other <other@gpuboot.invalid>")
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(key.public(armor=False))
    signed = tmp_path / "InRelease"
    signed.write_bytes(foreign_key.clearsigned(b"Origin: x\n"))
    gpgv = ["gpgv", "-q", "--keyring", str(keyring), str(signed)]
    assert subprocess.run(gpgv, capture_output=True).returncode != 0


def test_no_agent_stays_behind(key: SigningKey) -> None:
    key.detached(b"content")
    running = subprocess.run(
        ["gpg-connect-agent", "--homedir", str(key.home), "--no-autostart", "getinfo pid", "/bye"],
        capture_output=True,
        text=True,
    )
    assert "no gpg-agent running" in running.stderr
