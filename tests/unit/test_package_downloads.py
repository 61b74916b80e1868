"""What is to be installed is there before a node is taken out of service, whatever its index."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from deploys.engine import download_retries
from deploys.engine.download_retries import with_retries
from deploys.parts.nodes import operations as node_upgrade
from deploys.parts.nodes.node_parts import Parts
from deploys.parts.packages import apt
from gpuboot.cluster.cluster_state import KubeadmState
from gpuboot.cluster.node_upgrade import Difference
from tests.unit import apt_host
from tests.unit.rehearsed_host import UsedHost, fields

OPERATIONS = Path(__file__).parents[1] / "operations"
# commands that stop something, or after which a node is out of service until all has been done
TOUCHES = ("take_out", "_keep_off", "kubeadm upgrade", "rebooted", "systemctl restart")

needs_apt = pytest.mark.skipif(not apt_host.HAS_APT, reason=apt_host.REASON)


def commands(file: Path) -> list[str]:
    """The commands of a case, as one text each."""
    return [str(item) for item in yaml.safe_load(file.read_text())["commands"]]


def upgrades() -> list[Path]:
    """Cases of upgrades that install something."""
    folders = ("node_upgrade.upgraded", "kubeadm_upgrade.upgraded", "dcgm.engine")
    files = [file for name in folders for file in sorted((OPERATIONS / name).glob("*.yaml"))]
    return [file for file in files if any(" install " in text for text in commands(file))]


@pytest.mark.parametrize("file", upgrades(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_nothing_is_touched_before_the_index_has_been_read_and_packages_are_there(
    file: Path,
) -> None:
    texts = commands(file)
    touched = [place for place, text in enumerate(texts) if any(word in text for word in TOUCHES)]
    first = min(touched, default=len(texts))
    index = next(place for place, text in enumerate(texts) if "update -q" in text)
    markers = ("downloaded", " install ")  # a host engine is installed while the earlier one runs
    first_download = next(
        place for place, text in enumerate(texts) if any(word in text for word in markers)
    )
    assert index < first_download < first
    assert {"touch" in text for text in texts[:first_download]} == {False}


class Archive:
    """A used host with its own archive, whose packages can be downloaded."""

    def __init__(self, used: UsedHost) -> None:
        self.used, self.host = used, used.host
        used.host.write("/etc/apt/keyrings/own.asc", used.key.public())
        line = f"deb [signed-by=/etc/apt/keyrings/own.asc] {used.address}/publisher /\n"
        used.host.write("/etc/apt/sources.list.d/own.list", line)

    def offers(self, name: str, version: str, **relations: str) -> None:
        tree = self.host.path(f"trees/{name}-{version}")
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(
            fields(name, version, {**relations, "Description": "x"})
        )
        for folder in (tree / "DEBIAN", tree):
            folder.chmod(0o755)
        deb = self.host.path(f"trees/{name}_{version}_amd64.deb")
        subprocess.run(["dpkg-deb", "-b", str(tree), str(deb)], check=True, capture_output=True)
        self.used.offers(name, version, deb, **relations)
        os.utime(self.host.path("www/publisher/InRelease"), (1e9 + len(self.used.index),) * 2)

    def run(self, command: str, umask: int = 0o22) -> subprocess.CompletedProcess[str]:
        admin = str(self.host.path("var/lib/dpkg"))
        # no daemon of this machine holds dpkg's lock for a scratch host
        unlocked_command = command.replace(f"-o DPkg::Lock::Timeout={apt.LOCK_TIMEOUT_S}", "")
        return self.host.run(unlocked_command, umask=umask, DPKG_ADMINDIR=admin)

    @property
    def archives(self) -> list[str]:
        """Packages in apt's cache."""
        return sorted(file.name for file in self.host.path("var/cache/apt/archives").glob("*.deb"))


@pytest.fixture
def archive() -> Iterator[Archive]:
    with apt_host.host() as host, apt_host.served(host.path("www")) as address:
        prepared = Archive(UsedHost(host, address))
        prepared.offers("nvidia-open", "590.10-1", depends="nvidia-firmware (>= 590)")
        prepared.offers("nvidia-firmware", "590.10-1", source="nvidia-graphics-drivers")
        assert prepared.run("apt-get update -q").returncode == 0
        yield prepared


NEW = {"nvidia-driver-pinning-595.91.07": "", "nvidia-open": "595.91.07-*"}


def published(archive: Archive) -> None:
    """What a publisher has released since the host has read its index."""
    archive.offers("nvidia-open", "595.91.07-1", depends="nvidia-firmware (>= 595.91.07)")
    archive.offers("nvidia-firmware", "595.91.07-1", source="nvidia-graphics-drivers")
    archive.offers("nvidia-firmware", "600.10-1", source="nvidia-graphics-drivers")
    archive.used.pinning("595.91.07")


@needs_apt
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_packages_of_a_release_that_the_index_does_not_know(archive: Archive, umask: int) -> None:
    published(archive)
    stale = archive.run(apt.download(NEW), umask)
    assert stale.returncode != 0
    assert "Unable to locate package nvidia-driver-pinning-595.91.07" in stale.stderr
    assert archive.run(apt.READ_INDICES).returncode == 0
    result = archive.run(apt.download(NEW), umask)
    assert result.returncode == 0, result.stdout + result.stderr
    assert archive.archives == [
        "nvidia-driver-pinning-595.91.07_1_amd64.deb",
        # as it is pinned, and not the newest
        "nvidia-firmware_595.91.07-1_amd64.deb",
        "nvidia-open_595.91.07-1_amd64.deb",
    ]
    assert list(archive.host.path("etc/apt/preferences.d").iterdir()) == []
    assert list(archive.host.path("run/gpuboot").iterdir()) == []


@needs_apt
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_pins_a_version_holds_for_what_is_installed_with_it(
    archive: Archive, umask: int
) -> None:
    published(archive)
    archive.offers("socat", "1.8-1")
    assert archive.run(apt.READ_INDICES).returncode == 0
    command = apt.install({**NEW, "socat": ""}).get_raw_value()
    result = archive.run(command.replace(" install -y", " -s install -y"), umask)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("Inst ")]
    assert {line[1]: line[2] for line in lines} == {
        "nvidia-driver-pinning-595.91.07": "(1",
        "nvidia-firmware": "(595.91.07-1",
        "nvidia-open": "(595.91.07-1",
        "socat": "(1.8-1",
    }
    assert list(archive.host.path("run/gpuboot").iterdir()) == []


@needs_apt
def test_a_file_that_the_mirror_lacks_fails_as_well(archive: Archive) -> None:
    published(archive)
    archive.host.path("www/publisher/nvidia-firmware_595.91.07-1_amd64.deb").unlink()
    assert archive.run(apt.READ_INDICES).returncode == 0
    result = archive.run(apt.download(NEW))
    assert result.returncode != 0
    assert "404" in result.stderr


@needs_apt
def test_what_does_not_go_together_fails_in_apts_words(archive: Archive) -> None:
    archive.offers("containerd.io", "2.3.7-1", depends="libseccomp2 (>= 3)")
    assert archive.run(apt.READ_INDICES).returncode == 0
    result = archive.run(apt.download({"containerd.io": "2.3.7-*"}))
    assert result.returncode != 0
    assert "containerd.io : Depends: libseccomp2" in result.stdout


def test_a_node_whose_packages_cannot_be_had_stays_in_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no other is begun: pyinfra closes an operation whose command has failed."""
    kept_out: list[str] = []
    monkeypatch.setattr(
        node_upgrade, "_keep_out", lambda upgrade_run: kept_out.append(upgrade_run.node)
    )
    monkeypatch.setattr(node_upgrade, "_failed", [])
    monkeypatch.setattr(node_upgrade, "record", lambda *_: None)
    state = SimpleNamespace(is_executing=True)
    monkeypatch.setattr(node_upgrade, "host", SimpleNamespace(state=state, name="gpu1"))
    difference = Difference(containerd={"containerd.io": "2.3.7-*"})
    upgrade_run = node_upgrade._Upgrade(
        "gpu1", "cp1", cast(Parts, SimpleNamespace(driver=None)), "apt", difference,
        cast(KubeadmState, SimpleNamespace(started=(), packages={})), (), (), None, False,
    )  # fmt: skip
    operation = node_upgrade._upgrade(upgrade_run, None)
    names = [cast(Any, next(operation)).function.__name__ for _ in range(2)]
    assert names == ["_run_once", "downloaded"]
    operation.close()
    assert kept_out == []
    assert node_upgrade._failed == ["gpu1"]


def test_an_index_is_read_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []

    def run(state: Any, host: Any, command: str, subject: str, **options: Any) -> bool:
        calls.append((host.name, command))
        return True

    monkeypatch.setattr(download_retries, "_run_with_retries", run)
    monkeypatch.setattr(download_retries, "_attempted", set())
    for name in ("gpu1", "gpu1", "gpu2"):
        command = with_retries("read it", "the index", needed=False, once=True)
        host = SimpleNamespace(name=name)
        assert command.function(None, host, *command.args, **command.kwargs)
    assert calls == [("gpu1", "read it"), ("gpu2", "read it")]
