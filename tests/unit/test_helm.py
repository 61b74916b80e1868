"""What Helm has to do, and that downloads are verified before they are put in place."""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from gpuboot.cluster.helm_releases import Release, evaluate, needs_crds
from gpuboot.config.settings import Settings, parse_settings
from gpuboot.hosts import downloads

DEPLOYED = Release("web", "v1.0.0", "deployed", 3, {"a": {"b": 1}})


def test_an_equal_release_needs_nothing() -> None:
    assert evaluate(DEPLOYED, "web", "1.0.0", {"a": {"b": 1}}).action == "none"
    assert not needs_crds(DEPLOYED, "1.0.0")


@pytest.mark.parametrize(
    ("release", "action", "reason"),
    [
        (Release(), "install", "web 1.0.0 is not there"),
        (Release("web", "1.0.0", "deployed", 1, {"a": {"b": 2}}), "upgrade", "value a.b"),
        (Release("web", "0.9.0", "deployed", 1), "upgrade", "web 0.9.0 becomes web 1.0.0"),
        (Release("web", "1.0.0", "failed", 1), "upgrade", "revision 1 is failed"),
        (Release("web", "1.0.0", "failed", 4), "upgrade", "revision 4 is failed"),
        # of a history whose newest record somebody deleted
        (Release("web", "1.0.0", "superseded", 2), "upgrade", "revision 2 is superseded"),
        # `helm uninstall --keep-history`
        (Release("web", "1.0.0", "uninstalled", 2), "upgrade", "revision 2 is uninstalled"),
        (Release("web", "1.0.0", "pending-install", 1), "unlock", "revision 1 is pending-install"),
        (Release("web", "1.0.0", "pending-upgrade", 2), "unlock", "revision 2 is pending-upgrade"),
        (Release("web", "1.0.0", "pending-rollback", 3), "unlock", "3 is pending-rollback"),
        (Release("web", "1.0.0", "uninstalling", 2), "unlock", "revision 2 is uninstalling"),
        (Release("web", "1.0.0", "unknown", 2), "unlock", "revision 2 is unknown"),
    ],
)
def test_what_differs_is_told(release: Release, action: str, reason: str) -> None:
    change = evaluate(release, "web", "1.0.0", {"a": {"b": 1}})
    assert change.action == action
    assert any(text.endswith(reason) for text in change.reasons)


def test_reasons_hold_no_values() -> None:
    release = Release("web", "1.0.0", "deployed", 1, {"password": "hunter2"})
    assert evaluate(release, "web", "1.0.0", {"password": "hunter3"}).reasons == ("value password",)


@pytest.mark.parametrize(
    ("release", "due"),
    [
        (DEPLOYED, False),
        (Release("web", "0.9.0", "deployed", 1), True),
        # Helm was killed before it wrote down that it had begun: some may be there
        (Release(), True),
        (Release("web", "1.0.0", "pending-install", 1), True),
        (Release("web", "1.0.0", "failed", 1), True),
        (Release("web", "1.0.0", "pending-upgrade", 2), True),
    ],
)
def test_crds_are_applied_until_their_version_is_deployed(release: Release, due: bool) -> None:
    assert needs_crds(release, "1.0.0") is due


def tarball(folder: Path) -> tuple[str, str]:
    """A Helm tarball as upstream lays it out; its URL and digest."""
    path = folder / "helm-v1.0.0-linux-amd64.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("linux-amd64/helm")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"helm\n"))
    return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)


def test_helm_is_installed_when_its_digest_is_right(tmp_path: Path) -> None:
    url, digest = tarball(tmp_path)
    target = tmp_path / "bin-helm"
    assert run(downloads.helm_script(url, digest, str(target))).returncode == 0
    assert target.read_text() == "helm\n"


@pytest.mark.parametrize("digest", ["0" * 64, ""])
def test_another_file_is_not_installed(tmp_path: Path, digest: str) -> None:
    url, _ = tarball(tmp_path)  # without a digest there must be a .sha256 file, and is none
    target = tmp_path / "bin-helm"
    result = run(downloads.helm_script(url, digest, str(target)))
    assert result.returncode != 0
    assert not target.exists()
    if digest:
        assert "remedy" in result.stderr


@pytest.mark.parametrize("form", ["{}", "{}  helm.tar.gz\n"])
def test_an_unpinned_helm_takes_the_publishers_digest(tmp_path: Path, form: str) -> None:
    url, digest = tarball(tmp_path)
    (tmp_path / "helm-v1.0.0-linux-amd64.tar.gz.sha256").write_text(form.format(digest))
    target = tmp_path / "bin-helm"
    assert run(downloads.helm_script(url, "", str(target))).returncode == 0
    assert target.exists()


INDEX = """apiVersion: v1
entries:
  other:
  - digest: aaa
    version: 1.0.0
  web:
  - apiVersion: v2
    dependencies:
    - name: crds
      version: 1.0.0
    digest: "bbb"
    urls:
    - https://example/web-2.0.0.tgz
    version: 2.0.0
  - digest: ccc
    version: '1.0.0'
  webby:
  - digest: ddd
    version: 1.0.0
generated: "2026-01-01"
"""


@pytest.mark.parametrize(("version", "digest"), [("2.0.0", "bbb"), ("1.0.0", "ccc"), ("3", "")])
def test_digest_of_an_index(version: str, digest: str) -> None:
    command = ["awk", "-v", "chart=web", "-v", f"wanted={version}", downloads.INDEX_DIGEST]
    result = subprocess.run(command, input=INDEX, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == digest


def test_environment_of_downloads() -> None:
    assert downloads.environment(Settings(), mirrored=True) is None
    settings = parse_settings(
        {"proxy": {"https": "http://p:3128"}, "mirrors": {"ca_bundle": "/etc/ca.pem"}}
    )

    def environment_of(mirrored: bool) -> dict[str, str]:
        """What a script sees of it, by the shell."""
        environment = downloads.environment(settings, mirrored)
        assert environment
        script = downloads.with_environment("env")
        result = subprocess.run(
            ["sh", "-ec", script],
            env={"PATH": "/usr/bin:/bin"}, input=environment.get_secret_value(),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        variables = dict(line.split("=", 1) for line in result.stdout.splitlines())
        return {key: variables[key] for key in variables.keys() - {"PATH", "PWD", "_"}}

    assert environment_of(mirrored=False) == {"https_proxy": "http://p:3128"}
    assert environment_of(mirrored=True)["SSL_CERT_FILE"] == "/etc/ca.pem"


def test_helm_comes_from_its_publisher_or_the_mirror() -> None:
    assert downloads.helm_url(Settings(), "v4.3.1", "arm64") == (
        "https://get.helm.sh/helm-v4.3.1-linux-arm64.tar.gz"
    )
    mirrored = parse_settings({"mirrors": {"helm": "https://mirror.example/helm"}})
    assert downloads.helm_url(mirrored, "v4.3.1", "amd64").startswith(
        "https://mirror.example/helm/"
    )
