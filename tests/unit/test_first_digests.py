"""Digests that the version lock lacks: the first download's are kept, and hold from then on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploys.parts.helm import download_operations
from gpuboot.config import first_digests, versions
from gpuboot.config.settings import Settings, SettingsError
from gpuboot.hosts.downloads import helm_script
from tests.unit.test_helm import run, tarball

CHART = "kube-prometheus-stack"
DIGEST = "ab" * 32


@pytest.fixture(autouse=True)
def _site_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lock(**versions_of_site: Any) -> versions.Lock:
    settings = {"cluster": {"name": "prod"}, "versions": versions_of_site}
    return versions.lock(Settings.model_validate(settings))


def test_what_was_kept_is_part_of_the_lock_for_that_version_alone() -> None:
    version = lock().charts[CHART].version
    assert lock().charts[CHART].sha256 == ""
    first_digests.record("prod", first_digests.chart_key(CHART, version), DIGEST)
    first_digests.record("prod", first_digests.helm_key(lock().helm.version, "arm64"), "cd" * 32)
    assert lock().charts[CHART].sha256 == DIGEST
    assert lock().helm.sha256 == {"amd64": "", "arm64": "cd" * 32}
    assert lock(charts={CHART: {"version": "99.0.0"}}).charts[CHART].sha256 == ""
    second_site = versions.lock(Settings.model_validate({"cluster": {"name": "test"}}))
    assert second_site.charts[CHART].sha256 == ""


def test_a_digest_of_the_settings_counts_for_more() -> None:
    first_digests.record(
        "prod", first_digests.chart_key(CHART, lock().charts[CHART].version), DIGEST
    )
    assert lock(charts={CHART: {"sha256": "ef" * 32}}).charts[CHART].sha256 == "ef" * 32


@pytest.mark.parametrize(
    "text", ["no toml", '"chart web 1.0.0" = "short"', '"chart web 1.0.0" = 1']
)
def test_a_damaged_file_is_named(text: str) -> None:
    file = first_digests.path("prod")
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        lock()
    [problem] = raised.value.problems
    assert problem.cause.startswith("locks/prod.toml: ")
    assert "restore locks/prod.toml" in problem.remedy


class _Host:
    """Runs commands here, as a host of pyinfra does."""

    print_prefix = ""

    def run_shell_command(self, command: Any, **_: Any) -> tuple[bool, Any]:
        result = run(command.get_raw_value())
        output = SimpleNamespace(
            stdout=result.stdout, output=result.stderr, output_lines=result.stderr.splitlines()
        )
        return result.returncode == 0, output


def download(script: str, key: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    for name in ("inform", "warn"):
        monkeypatch.setattr(download_operations, name, lambda _: None)
    monkeypatch.setattr("deploys.engine.privilege.become_arguments", lambda _: {})
    monkeypatch.setattr("deploys.engine.download_retries.report_failure", lambda *_: False)
    command = download_operations._download(script, "Helm v1.0.0", None, "prod", key)
    host: Any = _Host()
    state: Any = SimpleNamespace(print_output=False, print_input=False)
    return bool(command.function(state, host, *command.args, **command.kwargs))


def test_the_first_download_writes_and_the_second_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, digest = tarball(tmp_path)
    sums = tmp_path / "helm-v1.0.0-linux-amd64.tar.gz.sha256"
    sums.write_text(digest)
    key, target = first_digests.helm_key("v1.0.0", "amd64"), tmp_path / "helm"
    assert download(helm_script(url, "", str(target)), key, monkeypatch)
    assert first_digests.read("prod") == {key: digest}

    archive = tmp_path / "helm-v1.0.0-linux-amd64.tar.gz"
    archive.write_bytes(archive.read_bytes() + b"changed")
    sums.write_text(hashlib.sha256(archive.read_bytes()).hexdigest())  # the publisher's word, too
    target.unlink()
    script = helm_script(url, first_digests.read("prod")[key], str(target))
    assert not download(script, "", monkeypatch)
    assert not target.exists()
    assert "or in locks/" in run(script).stderr
    assert first_digests.read("prod") == {key: digest}


def test_a_file_that_cannot_be_written_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(download_operations, "warn", messages.append)
    Path("locks").write_text("no folder")
    download_operations._record("prod", "chart web 1.0.0", DIGEST)
    [message] = messages
    assert "chart web 1.0.0" in message
    assert "remedy: put it into locks/prod.toml" in message
    assert DIGEST in message
