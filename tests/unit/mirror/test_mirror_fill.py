"""A mirror that is filled from publishers on this machine: whole, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from gpuboot.mirror import apt_content, content, fill, manifest, signing
from gpuboot.mirror.apt_content import PackageSelection
from gpuboot.mirror.client import Client, FetchError
from gpuboot.mirror.mirror_apt import Apt, Source
from gpuboot.mirror.mirror_layout import AptFolder
from gpuboot.mirror.mirror_requirements import Site
from gpuboot.mirror.signing import Home
from tests.unit.mirror.mirror_site import (
    DISTRIBUTION,
    DRIVER,
    IMAGES,
    TOOLKIT,
    causes,
    client,
    filled,
    made_site,
)
from tests.unit.mirror.mirror_upstream import Fault, Upstream, digest, paragraph


def test_a_mirror_holds_what_hosts_install_and_nothing_else(site: Site, tmp_path: Path) -> None:
    mirror_manifest = filled(site, tmp_path / "mirror")
    debs = sorted(file.path for file in mirror_manifest.files if file.path.endswith(".deb"))
    assert debs == sorted(
        [
            "apt/cuda/debian12/x86_64/pool/" + name
            for name in (
                f"nvidia-dkms-open_{DRIVER}-1_amd64.deb",
                f"nvidia-driver-pinning-{DRIVER}_{DRIVER}-1_amd64.deb",
                f"nvidia-open_{DRIVER}-1_amd64.deb",
                f"nvidia-persistenced_{DRIVER}-1_amd64.deb",
            )
        ]
        + [f"apt/debian/pool/{name}_1.0_amd64.deb" for name in (*DISTRIBUTION, "libc6")]
        + [
            "apt/docker/linux/debian/pool/" + name
            for name in (
                "containerd.io_2.3.7-1~debian.12~bookworm_amd64.deb",
                "docker-ce-cli_5%3a29.9.3-1~debian.12~bookworm_amd64.deb",
                "docker-ce_5%3a29.9.3-1~debian.12~bookworm_amd64.deb",
                "docker-compose-plugin_5.7.0-1~debian.12~bookworm_amd64.deb",
            )
        ]
        + [
            f"apt/libnvidia-container/stable/deb/amd64/pool/{name}_1.20.2-1_amd64.deb"
            for name in TOOLKIT
        ]
    )
    assert causes(mirror_manifest, tmp_path / "mirror") == []
    on_disk = {str(path.relative_to(tmp_path / "mirror")) for path in files(tmp_path / "mirror")}
    assert on_disk == {file.path for file in mirror_manifest.files} | {manifest.NAME}


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_flat_index_has_the_packages_of_all_architectures(
    keys: tuple[Home, Path],
) -> None:
    folder = AptFolder("kubernetes", "apt/kubernetes", "apt/kubernetes/key")
    texts = [paragraph("kubelet"), paragraph("kubelet").replace("amd64", "arm64")]
    selections = [
        PackageSelection(folder, architecture, {f"kubelet_{architecture}.deb": text})
        for architecture, text in zip(("amd64", "arm64", "amd64"), [*texts, texts[0]], strict=True)
    ]
    with signing.site_key(keys[1]) as key:
        items = {item.file.path: item.content for item in apt_content.indices(selections, key)}
    packages = (items["apt/kubernetes/Packages"] or b"").decode()
    assert packages == "\n".join(texts)
    release = (items["apt/kubernetes/Release"] or b"").decode()
    assert "Architectures: amd64 arm64\n" in release
    assert digest(packages.encode()).removeprefix("sha256:") in release


def test_the_manifest_says_where_everything_came_from(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    mirror_manifest = filled(site, tmp_path / "mirror")
    assert manifest.from_json((tmp_path / "mirror" / manifest.NAME).read_text()) == mirror_manifest
    sources = {file.path: file.source for file in mirror_manifest.files}
    deb = "libc6_1.0_amd64.deb"
    assert sources[f"apt/debian/pool/{deb}"] == f"{upstream.url}/debian/pool/{deb}"
    assert sources["apt/debian/dists/bookworm/InRelease"] == ""
    assert mirror_manifest.platforms == ("debian12",)
    assert mirror_manifest.versions["containerd"] == {"version": "2.3.7"}


def read_by_apt(work: Path, repository: Path, key: bytes) -> None:
    apt = Apt(work, "amd64", None)
    apt.update([Source(f"file:{repository}", key, "bookworm", "stable")], {})
    assert "docker-ce" in apt.names()


def test_indices_are_signed_by_the_sites_key(
    site: Site, keys: tuple[Home, Path], tmp_path: Path
) -> None:
    filled(site, tmp_path / "mirror")
    folder = tmp_path / "mirror/apt/docker/linux/debian"
    suite, key = folder / "dists/bookworm", (folder / "gpg").read_bytes()
    plain = (suite / "Release").read_bytes()
    for name in ("InRelease", "Release.gpg"):
        read_by_apt(tmp_path / f"site-{name}", folder, key)
        with pytest.raises(FetchError, match="is not signed"):
            read_by_apt(tmp_path / f"publisher-{name}", folder, keys[0].public())
        (suite / name).unlink()
    packages = (suite / "stable/binary-amd64/Packages").read_text()
    assert "99.0" not in packages
    assert digest(packages.encode()).removeprefix("sha256:") in plain.decode()


def test_an_index_of_images_stays_and_other_architectures_are_not_fetched(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    filled(site, tmp_path / "mirror")
    repository = tmp_path / "mirror/v2/quay.io/prometheus/prometheus"
    index = upstream.files["/v2/quay.io/prometheus/prometheus/manifests/v1.0.0"]
    assert (repository / "manifests/v1.0.0").read_bytes() == index
    assert (repository / "manifests" / digest(index)).read_bytes() == index
    assert len(list((repository / "manifests").iterdir())) == 3
    assert digest(b"base") in [path.name for path in (repository / "blobs").iterdir()]
    assert digest(b"arm") not in [path.name for path in (repository / "blobs").iterdir()]


def test_a_layer_that_images_share_is_fetched_once(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    mirror_manifest = filled(site, tmp_path / "mirror")
    paths = [file.path for file in mirror_manifest.files if file.path.endswith(digest(b"base"))]
    assert len(paths) == len(IMAGES)
    assert sum(upstream.fetched(f"/{path}") for path in paths) == 1
    assert len({(tmp_path / "mirror" / path).stat().st_ino for path in paths}) == 1


def test_a_whole_mirror_is_not_fetched_again_and_what_is_not_right_is(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    mirror_manifest = filled(site, folder)
    bulk = [
        file.path
        for file in mirror_manifest.files
        if file.path.endswith(".deb") or "/blobs/" in file.path
    ]
    missing, altered, cut = bulk[0], bulk[5], bulk[-1]
    (folder / missing).unlink()
    for path, text in {altered: b"X", cut: b""}.items():
        content = (folder / path).read_bytes()
        (folder / path).unlink()  # others may be linked to it
        (folder / path).write_bytes(text + content[1:])
    assert sorted(causes(mirror_manifest, folder)) == sorted(
        [
            f"{missing} is missing",
            f"{altered} was altered: its digest is another",
            f"{cut} is cut off: {(folder / cut).stat().st_size} of "
            f"{(folder / cut).stat().st_size + 1} bytes",
        ]
    )
    upstream.requests.clear()
    refilled = filled(site, folder)
    assert causes(refilled, folder) == []
    fetched = [path for path, _ in upstream.requests if path.endswith(".deb") or "/blobs/" in path]
    assert len(fetched) <= 3
    assert {file for file in refilled.files if file.source} == {
        f for f in mirror_manifest.files if f.source
    }


def test_an_interruption_at_any_file_costs_that_file_alone(
    site: Site, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = fill.plan(client(), site, tmp_path, lambda line: None)
    bulk = {item.file.sha256 for item in plan.items if item.content is None}
    folder, fetched, download = tmp_path / "mirror", 0, Client.download
    folder.mkdir()

    class Interrupted(Exception):
        pass

    def interrupted(*args: Any, **kwargs: Any) -> None:
        nonlocal fetched
        download(*args, **kwargs)
        fetched += 1
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Client, "download", interrupted)
        for _ in range(len(bulk)):
            with pytest.raises(Interrupted):
                fill.fetch(client(), folder, plan.items, lambda line: None)
        fill.fetch(client(), folder, plan.items, lambda line: None)
    assert fetched == len(bulk) > 20
    assert all(content.is_right(folder, item.file) for item in plan.items)


def test_a_repository_without_inrelease_has_its_signature_beside(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    del upstream.files["/toolkit/stable/deb/amd64/InRelease"]
    assert causes(filled(site, tmp_path / "mirror"), tmp_path / "mirror") == []


def test_without_archives_the_distributions_packages_are_named_as_what_is_not_there(
    upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path
) -> None:
    site = made_site(upstream, keys, tmp_path, archives=[])
    result, mirror_manifest = fill.fill(client(), site, tmp_path / "mirror", lambda line: None)
    assert (
        "without the distribution's own packages (ca-certificates, chrony, curl" in result.notes[0]
    )
    assert not [file for file in mirror_manifest.files if file.path.startswith("apt/debian")]


def test_what_hosts_have_installed_is_left_out(
    upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path
) -> None:
    status = tmp_path / "status"
    status.write_text(
        "Package: libc6\nStatus: install ok installed\nVersion: 2.36\nArchitecture: amd64\n"
    )
    site = made_site(upstream, keys, tmp_path, installed={"debian12": str(status)})
    paths = [file.path for file in filled(site, tmp_path / "mirror").files]
    assert "apt/debian/pool/curl_1.0_amd64.deb" in paths
    assert "apt/debian/pool/libc6_1.0_amd64.deb" not in paths


def test_a_mirror_of_another_version_is_told(site: Site, tmp_path: Path) -> None:
    mirror_manifest = filled(site, tmp_path / "mirror")
    versions = site.lock.model_dump(mode="json")
    assert manifest.wrong_versions(mirror_manifest, ["debian12"], ["amd64"], versions) == []
    newer = {**versions, "kubernetes": {**versions["kubernetes"], "version": "1.36.7"}}
    problems = manifest.wrong_versions(
        mirror_manifest, ["debian12", "ubuntu24.04"], ["amd64"], newer
    )
    assert [problem.cause for problem in problems] == [
        f"versions.kubernetes.version: the mirror has {site.lock.kubernetes.version}, wanted is "
        "1.36.7",
        "the mirror was not filled for platforms: ubuntu24.04",
    ]


def test_no_agent_of_gpg_is_left_running(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="own-", dir="/tmp") as folder:  # others have agents too
        monkeypatch.setattr(tempfile, "tempdir", folder)
        filled(site, tmp_path / "mirror")
        running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        assert f"gpg-agent --homedir {folder}" not in running.stdout


_KILLED = """
import os, signal, sys
from pathlib import Path
from gpuboot.mirror import signing
with signing.site_key(Path(sys.argv[1])) as key:
    key.clearsigned(b"text")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_one_left_of_the_key_is_removed(
    keys: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="own-", dir="/tmp") as folder:
        command = [sys.executable, "-c", _KILLED, str(keys[1])]
        killed = subprocess.run(command, env={**os.environ, "TMPDIR": folder}, check=False)
        assert killed.returncode == -signal.SIGKILL
        (leftover,) = Path(folder).glob("gpuboot-key-*")
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with signing.site_key(keys[1]):
            assert not leftover.exists()
            running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
            assert f"gpg-agent --homedir {leftover}" not in running.stdout
        assert not list(Path(folder).iterdir())


def test_a_publisher_that_is_busy_is_waited_for(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    waits: list[float] = []
    path = "/v2/quay.io/prometheus/prometheus/manifests/v1.0.0"
    upstream.faults[path] = Fault(times=1, status=429, headers={"Retry-After": "3"})
    fill.fill(client(waits), site, tmp_path / "mirror", lambda line: None)
    assert waits == [3.0]
