"""A site that is deployed from a mirror which `gpuboot mirror` filled, and from nothing else.

The lab's mirror is the publishers: the command fills a folder from it, is killed and goes
on. Then `gpuboot mirror serve` takes that mirror's place.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuboot.mirror import manifest
from gpuboot.mirror.signing import Home
from lab import state
from lab.mirror.keys import SigningKey
from lab.settings import CA_ON_MACHINES, REPOSITORIES, home
from tests.e2e.conftest import ROOT, Lab, fresh_lab, until

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAME, INVENTORY = "test-mirror", "inventories/lab.py"
FILL = ("gpuboot", "mirror", "fill", INVENTORY)
SOURCES = "/etc/apt/sources.list.d/debian.sources"
KEY_ON_MACHINES = "/etc/apt/keyrings/site-mirror.asc"


@pytest.fixture(scope="module")
def bare() -> Iterator[Lab]:
    with fresh_lab(NAME, "--gpus", "1", "--no-deploy") as lab:
        yield lab


@pytest.fixture(scope="module")
def mirror_settings(bare: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings of who fills the mirror: the lab's own is where the publishers are."""
    lab_state = state.load(NAME)
    url = f"https://{lab_state.host_address}"
    lock = json.loads((home(NAME) / "mirror/lab.lock.json").read_text())
    charts = {chart["repository"] for chart in lock["versions"]["charts"].values()}
    sources = {
        "apt": {
            name: {"url": f"{url}/apt/{path}", "key_sha256": lock["keys"][name]}
            for name, path in REPOSITORIES.items()
        },
        "images": {name: f"{url}/v2/{name}" for name in lock["registries"]},
        "charts": {name: f"{url}/charts/{name}" for name in charts},
        "helm": f"{url}/helm",
        "ca_bundle": str(lab_state.ca),
    }
    debian = {
        "url": f"{url}/apt/debian",
        "suites": [lab_state.debian.codename],
        "keyring": str(home(NAME) / "mirror/apt/debian/key.asc"),
    }
    status = lab_state.root(lab_state.machines[0]) / "var/lib/dpkg/status"
    return {
        "platforms": [f"debian{lab_state.debian.version}"],
        "signing_key": str(site_key(tmp_path_factory.mktemp("key"))),
        "archives": [debian],
        "installed": {f"debian{lab_state.debian.version}": str(status)},
        "packages": [f"linux-headers-{os.uname().release}"],
        "sources": sources,
    }


def site_key(folder: Path) -> Path:
    SigningKey.ensure(folder / "home", "mirror of a lab <lab@gpuboot.invalid>")
    gpg, path = Home(folder / "home"), folder / "site.key"
    path.touch(mode=0o600)
    with gpg.agent():
        path.write_bytes(gpg.run("--armor", "--export-secret-keys"))
    return path


@pytest.fixture(scope="module")
def folder(
    bare: Lab, mirror_settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A mirror that was filled in two commands: the first was killed."""
    path = tmp_path_factory.mktemp("filled") / "mirror"
    command, settings = [*FILL, str(path)], {"mirror": mirror_settings}
    log = path.parent / "killed.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, env=bare.environment(settings), stderr=stream,
            start_new_session=True,
        )  # fmt: skip

    def some() -> bool:
        assert process.poll() is None, log.read_text()
        return len(list(path.rglob("*.deb"))) >= 20

    until(some, "20 packages are there", 300)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (path / manifest.NAME).exists()
    mtimes = {file: file.stat().st_mtime_ns for file in path.rglob("*.deb")}
    result = bare.command(command, settings=settings)
    assert result.code == 0, result.details
    later_mtimes = {file: file.stat().st_mtime_ns for file in mtimes}
    assert later_mtimes == mtimes
    return path


@pytest.fixture(scope="module")
def served(bare: Lab, folder: Path) -> Iterator[Path]:
    """The log of the mirror's server, which takes the place of the lab's own."""
    lab_state, log = state.load(NAME), folder.with_name("served.log")
    command = ["gpuboot", "mirror", "serve", str(folder), "--address", lab_state.host_address]
    command += ["--port", "443", "--certificate", str(lab_state.folder / "mirror.crt")]
    command += ["--key", str(lab_state.folder / "mirror.key")]
    assert bare.lab("mirror", "--name", NAME, "stop").code == 0
    with log.open("w") as stream:
        server = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT)
    try:
        until(lambda: "serving" in log.read_text(), "the mirror is served", 60)
        yield log
    finally:
        server.terminate()
        server.wait()


def mirrors(lab: Lab, folder: Path) -> dict[str, Any]:
    """What `gpuboot mirror settings` prints, with the certificate's authority."""
    result = lab.command(["gpuboot", "mirror", "settings", str(folder), state.MIRROR_URL])
    assert result.code == 0, result.details
    mirror_urls: dict[str, Any] = ast.literal_eval(f"{{{result.out}}}")["mirrors"]
    return {**mirror_urls, "ca_bundle": CA_ON_MACHINES}


def from_the_mirror(lab: Lab, folder: Path) -> None:
    """The machines' own packages come from it too, as when they were installed from it."""
    lab_state = state.load(NAME)
    key = (folder / "apt/debian/key.asc").read_text()
    text = (
        f"Types: deb\nURIs: {state.MIRROR_URL}/apt/debian\nSuites: {lab_state.debian.codename}\n"
        f"Components: main\nSigned-By: {KEY_ON_MACHINES}\n"
    )
    for machine in lab_state.machines:
        for path, content in {KEY_ON_MACHINES: key, SOURCES: text}.items():
            lab.ssh(machine.name, f"cat > {path} <<'END'\n{content}END")
        lab.ssh(machine.name, "apt-get update -q -o APT::Update::Error-Mode=any")


def test_the_mirror_is_whole_and_of_the_versions_that_the_site_wants(
    bare: Lab, folder: Path, mirror_settings: dict[str, Any]
) -> None:
    command = ["gpuboot", "mirror", "check", str(folder)]
    result = bare.command([*command, INVENTORY], settings={"mirror": mirror_settings})
    assert result.code == 0, result.details
    print(result.out.strip())
    later = {"mirror": mirror_settings, "versions": {"containerd": {"version": "2.9.9"}}}
    result = bare.command([*command, INVENTORY], settings=later)
    assert result.code == 1
    assert "versions.containerd.version: the mirror has" in result.out


def test_what_was_altered_is_named_and_fetched_again(
    bare: Lab, folder: Path, mirror_settings: dict[str, Any]
) -> None:
    victim = max(folder.rglob("containerd.io_*.deb"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 0xFF
    victim.write_bytes(bytes(content))
    result = bare.command(["gpuboot", "mirror", "check", str(folder)])
    assert result.code == 1
    assert f"{victim.relative_to(folder)} was altered" in result.out
    result = bare.command([*FILL, str(folder)], settings={"mirror": mirror_settings})
    assert result.code == 0, result.details
    assert bare.command(["gpuboot", "mirror", "check", str(folder)]).code == 0


def test_a_site_is_deployed_and_proven_from_the_mirror_alone(
    bare: Lab, folder: Path, served: Path
) -> None:
    from_the_mirror(bare, folder)
    # DNS went with the lab's own mirror; hosts find the mirror in /etc/hosts
    verify = {"reports": str(bare.reports), "outside_name": ""}
    settings = {"mirrors": mirrors(bare, folder), "verify": verify}
    start = time.monotonic()
    result = bare.deploy(settings=settings)
    assert result.code == 0, result.details
    print(f"deployed from the mirror in {time.monotonic() - start:.0f} s")
    result, report = bare.verify(settings)
    assert result.code == 0, result.details
    assert report["verdict"] == "proven"
    access_log = served.read_text()
    for part in (".deb ", "/helm/helm-", "/charts/nvidia/", "/v2/registry.k8s.io/", "/v2/quay.io/"):
        assert part in access_log, part
    missed = [line for line in access_log.splitlines() if '" 404 ' in line]
    # apt asks for what a repository may have beside: descriptions, other compressions
    assert not [line for line in missed if "/v2/" in line or "/charts/" in line], missed
