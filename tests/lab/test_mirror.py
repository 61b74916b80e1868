"""The mirror's web server over real TLS, and that what breaks it is undone."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from debian.deb822 import Release

from gpuboot.mirror import release
from lab import state
from lab.build import software_docker
from lab.build.debs import Deb, build_deb
from lab.debian_releases import BOOKWORM
from lab.mirror import docroot as docroots
from lab.mirror import lock as locks
from lab.mirror import parts
from lab.mirror.apt_repository import build_repo
from lab.mirror.keys import CertificateAuthority
from lab.mirror.parts import Part
from lab.mirror.webserver import locate, make_server
from lab.state import LabError

MANIFEST = json.dumps({"schemaVersion": 2, "layers": []}).encode()
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
def docroot(tmp_path: Path) -> Path:
    root = tmp_path / "docroot"
    manifests = root / "v2/registry.k8s.io/pause/manifests"
    manifests.mkdir(parents=True)
    (manifests / "3.10.2").write_bytes(MANIFEST)
    (manifests / "list").write_text(json.dumps({"mediaType": INDEX_TYPE, "manifests": []}))
    deb = root / "apt/kubernetes/core:/stable:/v1.36/deb"
    deb.mkdir(parents=True)
    (deb / "Packages").write_text("Package: demo\n")
    (tmp_path / "secret").write_text("secret")
    return root


@pytest.fixture
def connection(docroot: Path, tmp_path: Path) -> Iterator[http.client.HTTPSConnection]:
    authority = CertificateAuthority.ensure(tmp_path / "ca")
    crt, key = tmp_path / "mirror.crt", tmp_path / "mirror.key"
    authority.issue("localhost", "127.0.0.1", crt, key)
    server = make_server(docroot, "127.0.0.1", 0, crt, key)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    context = ssl.create_default_context(cafile=str(authority.certificate))
    client = http.client.HTTPSConnection("127.0.0.1", server.server_port, context=context)
    yield client
    client.close()
    server.shutdown()
    server.server_close()


def fetch(
    connection: http.client.HTTPSConnection, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=names)
    response = connection.getresponse()
    return response, response.read()


def test_a_file_is_served_and_the_connection_kept(
    connection: http.client.HTTPSConnection,
) -> None:
    path = "/apt/kubernetes/core%3A/stable:/v1.36/deb/Packages"
    for _ in range(2):
        response, body = fetch(connection, path)
        assert (response.status, body) == (200, b"Package: demo\n")
    head, body = fetch(connection, path, "HEAD")
    assert (head.status, head.headers["Content-Length"], body) == (200, "14", b"")
    modified = response.headers["Last-Modified"]
    unchanged, body = fetch(connection, path, If_Modified_Since=modified)
    assert (unchanged.status, body) == (304, b"")


def test_a_manifest_has_its_type_and_digest(connection: http.client.HTTPSConnection) -> None:
    base = "/v2/registry.k8s.io/pause/manifests"
    response, body = fetch(connection, f"{base}/3.10.2?ns=registry.k8s.io")
    assert body == MANIFEST
    assert response.headers["Content-Type"] == "application/vnd.oci.image.manifest.v1+json"
    digest = hashlib.sha256(MANIFEST).hexdigest()
    assert response.headers["Docker-Content-Digest"] == f"sha256:{digest}"
    index_response, _ = fetch(connection, f"{base}/list")
    assert index_response.headers["Content-Type"] == INDEX_TYPE


def test_the_registry_says_that_it_is_one(connection: http.client.HTTPSConnection) -> None:
    assert fetch(connection, "/v2/")[0].status == 200


@pytest.mark.parametrize(
    "path", ["/absent", "/", "/apt", "/../secret", "/%2e%2e/secret", "/apt/../../secret"]
)
def test_nothing_else_is_served(connection: http.client.HTTPSConnection, path: str) -> None:
    response, body = fetch(connection, path)
    assert response.status == 404
    assert b"secret" not in body


def test_a_client_that_does_not_trust_the_authority_gets_nothing(
    connection: http.client.HTTPSConnection,
) -> None:
    stranger = http.client.HTTPSConnection("127.0.0.1", connection.port)
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger.request("GET", "/v2/")
    assert fetch(connection, "/v2/")[0].status == 200


def test_a_path_is_never_outside(docroot: Path) -> None:
    assert locate(docroot, "/../secret") is None
    assert locate(docroot, "/v2/registry.k8s.io/pause/manifests/3.10.2?ns=x") is not None


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for sockets of gpg-agent, which take 107 characters."""
    with tempfile.TemporaryDirectory(prefix="gpuboot-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def lab(tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch) -> state.Lab:
    """A lab whose mirror has one apt repository and a Helm tarball."""
    monkeypatch.setenv("GPUBOOT_STATE", str(short_path / "state"))
    monkeypatch.setenv("GPUBOOT_CACHE", str(short_path / "cache"))
    cuda = parts.repositories(BOOKWORM)["cuda"]
    deb = build_deb(Deb("demo", "1.0", files={"/x": "x"}), tmp_path / "debs")
    repository = tmp_path / "store/cuda"
    build_repo(repository, [deb], cuda.key(), flat=True)
    helm = tmp_path / "store/helm"
    helm.mkdir()
    (helm / "helm-v4.3.0-linux-amd64.tar.gz").write_bytes(b"tarball" * 20)
    (helm / "helm-v4.3.0-linux-amd64.tar.gz.sha256").write_text("0" * 64)
    manifests = tmp_path / "store/v2/quay.io/prometheus/prometheus/manifests"
    manifests.mkdir(parents=True)
    for tag in ("v3.14.0", "sha256:0f"):
        (manifests / tag).write_text("{}")
    new_lab = state.ensure("lab", (1,), False)
    docroot_parts = [
        Part(repository, cuda.path),
        Part(helm, "helm"),
        Part(tmp_path / "store/v2", "v2"),
    ]
    docroots.install(new_lab, docroot_parts)
    return new_lab


def snapshot(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_lock_names_versions_and_digests(lab: state.Lab) -> None:
    lock = json.loads((lab.docroot / "lab.lock.json").read_text())
    digest = hashlib.sha256(b"tarball" * 20).hexdigest()
    assert lock["versions"]["helm"] == {"version": "v4.3.0", "sha256": {"amd64": digest}}
    assert lock["versions"]["kubernetes"]["minor"] == "1.37"
    built = {"version": software_docker.DOCKER, "compose": software_docker.COMPOSE}
    assert lock["versions"]["docker"] == built
    assert lock["registries"] == ["quay.io"]
    assert lock["versions"]["images"] == {"prometheus": "v3.14.0"}
    key = (lab.docroot / parts.repositories(lab.debian)["cuda"].key_path).read_bytes()
    assert lock["keys"] == {"cuda": hashlib.sha256(key).hexdigest()}


def test_an_image_that_a_site_names_has_one_tag(lab: state.Lab) -> None:
    (lab.docroot / "v2/quay.io/prometheus/prometheus/manifests/v3.13.0").write_text("{}")
    with pytest.raises(LabError, match=r"prometheus as v3\.13\.0, v3\.14\.0: which one"):
        locks.lock(lab.docroot, lab.debian)


def test_restore_undoes_damage_and_the_store_is_never_touched(
    lab: state.Lab, tmp_path: Path
) -> None:
    original, stored = snapshot(lab.docroot), snapshot(tmp_path / "store")
    broken = docroots.corrupt(lab, "helm")
    assert broken.name == "helm-v4.3.0-linux-amd64.tar.gz"
    docroots.missign(lab, "cuda")
    now = snapshot(lab.docroot)
    changed = {name for name in original if now[name] != original[name]}
    assert broken.relative_to(lab.docroot).as_posix() in changed
    assert f"{parts.repositories(lab.debian)['cuda'].path}/InRelease" in changed
    assert snapshot(tmp_path / "store") == stored
    docroots.restore(lab)
    assert snapshot(lab.docroot) == original


def test_a_release_can_be_withheld_and_published(lab: state.Lab) -> None:
    repository = parts.repositories(lab.debian)["cuda"]
    index = lab.docroot / repository.path / "Packages"
    [package, *_] = release_versions(index)
    original = snapshot(lab.docroot)
    with pytest.raises(LabError, match=r"no packages of '9\.9'"):
        docroots.withhold(lab, "cuda", "9.9")
    now = (index.parent / "InRelease").stat().st_mtime
    date = release_date(index.parent)
    assert docroots.withhold(lab, "cuda", package) >= 1
    # apt reads what comes back only where it is newer
    assert (index.parent / "InRelease").stat().st_mtime < now
    assert release_date(index.parent) < date
    assert package not in release_versions(index)
    [index_entry] = Release((index.parent / "Release").read_text())["SHA256"]
    assert index_entry["name"] == "Packages"
    assert index_entry["sha256"] == hashlib.sha256(index.read_bytes()).hexdigest()
    docroots.restore(lab)
    assert snapshot(lab.docroot) == original


def release_date(folder: Path) -> datetime:
    lines = (folder / "Release").read_text().splitlines()
    [date] = [line.removeprefix("Date: ") for line in lines if line.startswith("Date: ")]
    return datetime.strptime(date, release.DATE)


def release_versions(index: Path) -> list[str]:
    """Versions of the packages of an index."""
    lines = index.read_text().splitlines()
    return [line.split(": ")[1] for line in lines if line.startswith("Version: ")]


def test_only_what_is_served_can_be_broken(lab: state.Lab) -> None:
    with pytest.raises(LabError, match="'absent'"):
        docroots.corrupt(lab, "absent")
    with pytest.raises(LabError, match="there are: cuda"):
        docroots.missign(lab, "yum")
