"""`gpuboot mirror` as a person types it."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploys.run import offline
from gpuboot.cli import app
from gpuboot.cli import mirror_command as commands
from gpuboot.config.settings import parse_settings
from gpuboot.mirror import manifest
from gpuboot.mirror.mirror_requirements import Site
from tests.unit.mirror.mirror_site import DISTRIBUTION, filled
from tests.unit.mirror.mirror_upstream import Upstream


def run(*arguments: object) -> tuple[int, str]:
    """Exit code and output, of both streams."""
    result = CliRunner().invoke(app, ["mirror", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.fixture
def configured_site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """What the inventory says, without reading one."""
    monkeypatch.setattr(commands, "_site", lambda inventory, data: site)
    return site


@pytest.fixture
def folder(configured_site: Site, tmp_path: Path) -> Path:
    filled(configured_site, tmp_path / "mirror")
    return tmp_path / "mirror"


def test_a_plan_counts_each_part(configured_site: Site) -> None:
    code, output = run("plan", "prod.py")
    assert code == 0, output
    rows = {line[:28].strip(): line[28:].split() for line in output.splitlines()}
    assert rows["apt debian"][0] == str(len(DISTRIBUTION) + 1)
    assert rows["apt debian"][2] == "bytes"
    assert int(rows["together"][0]) == sum(
        int(cells[0]) for name, cells in rows.items() if name.startswith(("apt ", "images "))
    )


def test_fill_check_and_settings_go_together(configured_site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    code, output = run("fill", "prod.py", folder)
    assert code == 0, output
    assert f"{folder} is whole" in output
    code, output = run("check", folder, "prod.py")
    assert code == 0, output
    code, output = run("settings", folder, "https://mirror.example/")
    mirrors = ast.literal_eval(f"{{{output}}}")["mirrors"]
    key = (folder / "apt/docker/linux/debian/gpg").read_bytes()
    docker = parse_settings({"mirrors": mirrors}).mirrors.apt["docker"]
    assert docker.url == "https://mirror.example/apt/docker/linux"
    assert docker.key_sha256 == hashlib.sha256(key).hexdigest()


def test_what_is_wrong_with_a_mirror_is_named_with_its_remedy(folder: Path) -> None:
    victim = next(folder.rglob("libc6_*.deb"))
    victim.write_bytes(b"?" * victim.stat().st_size)
    code, output = run("check", folder)
    assert code == 1
    name = victim.relative_to(folder)
    assert f"{name} was altered: its digest is another\n    remedy: run `gpuboot mirror" in output


def test_what_cannot_be_had_ends_a_plan_with_another_exit_code(
    configured_site: Site, upstream: Upstream, tmp_path: Path
) -> None:
    path = "/v2/quay.io/prometheus/prometheus/manifests/v1.0.0"
    tree = json.loads(upstream.files[path])
    tree["manifests"] = tree["manifests"][1:]
    upstream.files[path] = json.dumps(tree).encode()
    code, output = run("plan", "prod.py")
    assert code == 1
    assert "quay.io/prometheus/prometheus:v1.0.0 has nothing for amd64\n    remedy" in output
    del upstream.files[path]
    code, output = run("plan", "prod.py")
    assert code == 2
    assert "404" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("command", ["check", "serve"])
def test_a_folder_that_is_no_mirror_is_told(command: str, tmp_path: Path) -> None:
    code, output = run(command, tmp_path)
    assert code == 2
    assert "is no mirror that was filled" in output
    (tmp_path / manifest.NAME).write_text('{"format": 7}')
    code, output = run(command, tmp_path)
    assert code == 2
    assert "its format is of another version" in output


def test_a_certificate_needs_its_key(folder: Path, tmp_path: Path) -> None:
    code, output = run("serve", folder, "--certificate", tmp_path / "x.crt")
    assert code == 2
    assert "go together" in output
    code, output = run("serve", folder, "--certificate", tmp_path / "x", "--key", tmp_path / "x")
    assert code == 2
    assert "remedy" in output


def test_a_mirror_is_served_until_it_is_told_to_end(folder: Path) -> None:
    program = Path(sys.executable).parent / "gpuboot"
    options = ["--address", "127.0.0.1", "--port", "0"]
    command = [str(program), "mirror", "serve", str(folder), *options]
    to_pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    server = subprocess.Popen(command, text=True, **to_pipe)
    assert server.stdout is not None
    try:
        url = server.stdout.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{url}/v2/") as answer:
            assert answer.status == 200
    finally:
        server.terminate()  # no SIGINT: what runs in the background of a script ignores it
        output = server.stdout.read()
        server.wait()
    assert server.returncode == 0, output
    assert '"GET /v2/ HTTP/1.1" 200' in output


def inventory(folder: Path, hosts: str, settings: dict[str, Any]) -> str:
    (folder / "group_data").mkdir()
    (folder / "prod.py").write_text(hosts)
    (folder / "group_data/prod.py").write_text(f"gpuboot = {settings!r}\n")
    return str(folder / "prod.py")


CLUSTER = 'control_plane = [("cp1", {"address": "192.0.2.1"})]\nworkers = [("g", {"gpus": 2})]\n'


def test_an_inventory_is_read_without_a_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inventory_path = inventory(tmp_path, CLUSTER, {"cluster": {"name": "x"}})
    assert offline.main([inventory_path]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["gpuboot"] == {"cluster": {"name": "x"}}
    assert [(node["name"], node["gpus"]) for node in tree["nodes"]] == [("cp1", 0), ("g", 2)]


@pytest.mark.parametrize(
    ("hosts", "settings", "message"),
    [
        (CLUSTER, {"mirror": {"platforms": ["rocky9"]}}, "mirror.platforms"),
        (CLUSTER, {"mirror": {"images": ["busybox"]}}, "an image with its registry and tag"),
        (CLUSTER, {"mirror": {"packages": ["../x"]}}, "a package's name"),
        (CLUSTER, {"mirror": {"archives": [{"url": "https://a.example", "suites": ["Noble"]}]}},
         "a suite of the distribution"),
        ("workers = [1 / 0]\n", {}, "ZeroDivisionError"),
        ("control_plane = []\n", {}, "has no hosts"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_inventory_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hosts: str, settings: Any, message: str
) -> None:
    assert offline.main([inventory(tmp_path, hosts, settings)]) == 1
    output = capsys.readouterr().err
    assert message in output
    assert "remedy" in output
