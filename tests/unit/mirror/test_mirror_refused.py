"""What no mirror is filled with: what nobody signed, what is another file, what nobody has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gpuboot.config.settings import SettingsError
from gpuboot.mirror import fill, manifest, signing
from gpuboot.mirror.client import FetchError
from gpuboot.mirror.mirror_requirements import Site
from gpuboot.mirror.signing import Home, SigningError
from tests.unit.mirror.mirror_site import TOOLKIT, filled, made_site
from tests.unit.mirror.mirror_upstream import Upstream, digest, paragraph, publish


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(
    site: Site, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100 << 20))
    with pytest.raises(FetchError, match=r"needs .* more, and its disk has 100\.0 MiB free"):
        filled(site, tmp_path / "mirror")
    assert not [path for path, _ in upstream.requests if path.endswith(".deb") or "/blobs/" in path]


def test_a_repository_that_another_key_signed_is_refused(
    site: Site, keys: tuple[Home, Path], upstream: Upstream, tmp_path: Path
) -> None:
    path = "/toolkit/stable/deb/amd64/InRelease"
    with signing.site_key(keys[1]) as foreign_key:
        upstream.files[path] = foreign_key.clearsigned(b"Origin: x\n")
    with pytest.raises(FetchError, match="is not signed"):
        filled(site, tmp_path / "mirror")
    upstream.files[path] = b"Origin: x\n"
    with pytest.raises(FetchError, match=r"not signed|Clearsigned file"):
        filled(site, tmp_path / "mirror")


def test_an_index_that_is_not_what_its_release_says_is_refused(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.files["/toolkit/stable/deb/amd64/Packages.gz"] += b"x"
    with pytest.raises(FetchError, match=r"Hash Sum mismatch|unexpected size"):
        filled(site, tmp_path / "mirror")


def test_a_package_without_a_digest_is_refused(
    site: Site, keys: tuple[Home, Path], upstream: Upstream, tmp_path: Path
) -> None:
    texts = {name: paragraph(name, "1.20.2-1").partition("SHA256")[0] for name in TOOLKIT}
    publish(upstream, "/toolkit/stable/deb/amd64", texts, keys[0])
    with pytest.raises(FetchError, match="its index has no SHA256 of it"):
        filled(site, tmp_path / "mirror")


def test_another_key_than_the_known_one_is_refused(
    site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.files["/toolkit/gpgkey"] += b"\n"
    with pytest.raises(FetchError, match="is another than the one that is known"):
        filled(site, tmp_path / "mirror")


def test_an_image_that_is_not_its_digest_is_refused(
    site: Site, upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path
) -> None:
    name = "nvcr.io/team/model:1@" + digest(b"wanted")
    upstream.files[f"/v2/nvcr.io/team/model/manifests/{digest(b'wanted')}"] = b'{"layers": []}'
    pinned = made_site(upstream, keys, tmp_path, images=[name])
    with pytest.raises(FetchError, match="is not what its digest says"):
        filled(pinned, tmp_path / "mirror")


def test_what_nobody_has_is_told(
    upstream: Upstream, keys: tuple[Home, Path], tmp_path: Path
) -> None:
    incomplete_site = made_site(upstream, keys, tmp_path, packages=["nothing"])
    with pytest.raises(SettingsError, match="debian12, amd64: Unable to locate package nothing\n"):
        filled(incomplete_site, tmp_path / "mirror")


def test_a_site_key_that_others_may_read_is_refused(
    site: Site, keys: tuple[Home, Path], upstream: Upstream, tmp_path: Path
) -> None:
    loose = tmp_path / "loose.key"
    loose.write_bytes(keys[1].read_bytes())
    loose.chmod(0o644)
    with pytest.raises(SigningError, match="chmod 600"):
        filled(made_site(upstream, keys, tmp_path, signing_key=str(loose)), tmp_path / "mirror")
    with pytest.raises(SigningError, match="names no key"):
        filled(made_site(upstream, keys, tmp_path, signing_key=None), tmp_path / "mirror")
    public = tmp_path / "public.key"
    public.write_bytes(keys[0].public())
    public.chmod(0o600)
    with pytest.raises(SigningError, match="holds no secret key"):
        filled(made_site(upstream, keys, tmp_path, signing_key=str(public)), tmp_path / "mirror")
    assert not (tmp_path / "mirror").exists()


def test_a_machine_without_apt_is_told_what_to_install(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpg = shutil.which("gpg")
    assert gpg is not None
    (tmp_path / "gpg").symlink_to(gpg)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError) as error:
        fill.client_for(site)
    assert error.value.cause == "this machine has no apt-get, apt-cache, gpg-connect-agent"
    assert "packages apt and gnupg" in error.value.remedy


def test_a_manifest_that_is_none_is_told() -> None:
    for text in ("", "[]", "{}", json.dumps({"format": 2})):
        with pytest.raises(manifest.BadManifestError):
            manifest.from_json(text)
