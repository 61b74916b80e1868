"""A lab on the publishers' packages: what it asks of the host, and what its machines are told.

Such a lab needs the internet and has never run: only what is decided before is tested here.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuboot.config.inventory import Node
from gpuboot.config.versions import lock as pinned
from gpuboot.preflight.connectivity import endpoints
from gpuboot.site.load_site import load
from lab import network, preflight, publishers, settings, state
from lab.build.debs import Deb, build_deb
from lab.cli import app
from lab.debian_releases import BOOKWORM
from lab.mirror import docroot, parts
from lab.mirror.apt_repository import build_repo
from lab.mirror.parts import Part
from lab.state import LabError


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: making a signing key takes a second."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def host(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host that lacks nothing; its files of the network are in this folder."""
    monkeypatch.setenv("GPUBOOT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GPUBOOT_CACHE", str(cache))
    monkeypatch.setenv("GPUBOOT_DEBIAN_MIRROR", "http://deb.example.com/debian")
    (tmp_path / "ip_forward").write_text("1\n")
    (tmp_path / "resolv.conf").write_text("search example.com\nnameserver 192.0.2.53\n")
    monkeypatch.setattr(publishers, "_FORWARDING", tmp_path / "ip_forward")
    files = (tmp_path / "resolv.conf", tmp_path / "resolved.conf")
    monkeypatch.setattr(publishers, "_RESOLV_CONF", files)
    monkeypatch.setattr(publishers, "_connects", lambda address: True)
    return tmp_path


def test_an_able_host_lacks_nothing(host: Path) -> None:
    assert list(publishers.missing()) == []


def test_everything_that_is_missing_is_named_with_its_remedy(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host / "ip_forward").write_text("0\n")
    (host / "resolv.conf").write_text("nameserver 127.0.0.53\n")
    silent = {"quay.io:443", "deb.example.com:80"}
    monkeypatch.setattr(publishers, "_connects", lambda address: address not in silent)
    forwarding, servers, internet = publishers.missing()
    assert "sysctl -w net.ipv4.ip_forward=1" in forwarding
    assert "resolved.conf names none but this host" in servers
    assert (
        "no connection to deb.example.com:80 (Debian packages); quay.io:443 (images of quay.io)"
        in internet
    )
    assert "Without --upstream the lab builds" in internet


def test_it_fails_before_anything_is_made(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "missing", lambda: iter(()))
    monkeypatch.setattr(publishers, "_connects", lambda address: False)
    result = CliRunner().invoke(app, ["up", "--upstream", "--single"])
    assert isinstance(result.exception, LabError)
    assert "cannot run on this host" in str(result.exception)
    assert "registry.k8s.io:443" in str(result.exception)
    assert state.labs() == []


def test_a_port_that_nobody_listens_on_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert publishers.unreachable([address]) == []
    assert publishers.unreachable([address]) == [address]


def test_name_servers_behind_systemds_own_are_found(host: Path) -> None:
    (host / "resolv.conf").write_text("nameserver 127.0.0.53\noptions edns0\n")
    (host / "resolved.conf").write_text("nameserver ::1\nnameserver 198.51.100.7\n")
    assert publishers.name_servers() == ["198.51.100.7"]


def test_machines_use_the_hosts_debian_archive(host: Path) -> None:
    archive, security = publishers.debian_sources(BOOKWORM).split("\n\n")
    assert "URIs: http://deb.example.com/debian\nSuites: bookworm bookworm-updates\n" in archive
    assert "URIs: http://deb.example.com/debian-security\nSuites: bookworm-security\n" in security
    assert "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n" in security


@pytest.fixture
def planned(host: Path) -> state.Lab:
    return state.ensure("lab", (2,), single=True, upstream=True)


@pytest.fixture
def lab(host: Path, planned: state.Lab) -> state.Lab:
    """A lab whose mirror was laid out with the kinds of parts that an upstream lab has."""
    cuda = parts.repositories(BOOKWORM)["cuda"]
    deb = build_deb(Deb("nvidia-open", "595.112.07-1", files={"/x": "x"}), host / "debs")
    build_repo(host / "store/cuda", [deb], cuda.key(), flat=True)
    (host / "store/v2/nvcr.io").mkdir(parents=True)
    for chart in publishers.CHARTS:
        (host / "store" / chart).mkdir()
        (host / "store" / chart / f"{chart}-1.0.0.tgz").write_bytes(b"chart")
    charts = [
        Part(host / "store" / chart, f"charts/{parts.CHARTS[chart]}") for chart in publishers.CHARTS
    ]
    served = [Part(host / "store/cuda", cuda.path), Part(host / "store/v2", "v2"), *charts]
    docroot.install(planned, served)
    return planned


def test_the_settings_name_the_lab_for_what_is_simulated_only(lab: state.Lab) -> None:
    data: dict[str, Any] = settings.settings(lab.name)
    mirrors = data["mirrors"]
    assert set(mirrors) == {"apt", "images", "charts", "ca_bundle"}
    assert set(mirrors["apt"]) == {"cuda"}
    assert mirrors["images"] == {"nvcr.io": "https://mirror.lab/v2/nvcr.io"}
    assert set(mirrors["charts"]) == {"nvidia", "dcgm-exporter"}
    assert data["monitoring"]["grafana"] is True


def test_the_settings_hold_and_all_else_comes_from_its_publishers(lab: state.Lab) -> None:
    data: dict[str, Any] = settings.settings(lab.name)
    checked, lock = load(data)
    node = Node("node1", "node1", "192.0.2.1", "control_plane", gpus=2, leader=True)
    downloads = endpoints(checked, node)
    assert downloads.keys() - publishers.publishers().keys() == {"mirror.lab:443"}
    default = pinned(load({})[0])
    assert lock.kubernetes == default.kubernetes
    assert lock.containerd == default.containerd
    assert lock.helm == default.helm
    assert lock.images == default.images
    stack = "kube-prometheus-stack"
    assert lock.charts[stack] == default.charts[stack]
    assert lock.charts["gpu-operator"].version == "1.0.0"


def test_a_lab_remembers_its_kind_and_does_not_change_it(planned: state.Lab) -> None:
    assert json.loads((planned.folder / "lab.json").read_text())["upstream"] is True
    assert state.load("lab") == planned
    with pytest.raises(LabError, match="--upstream"):
        state.ensure("lab", (2,), single=True)


OPEN = network._table(state.plan("open", 0, (2,), single=True, upstream=True))
CLOSED = network._table(state.plan("closed", 0, (2,), single=True))


def test_only_machines_of_an_upstream_lab_get_out() -> None:
    out = 'iifname "gblab0" oifname != "gblab0" reject'
    assert out in CLOSED
    assert "masquerade" not in CLOSED
    assert out not in OPEN
    assert 'ip saddr 10.77.0.0/24 oifname != "gblab0" masquerade' in OPEN


@pytest.mark.parametrize("table", [OPEN, CLOSED])
def test_nobody_gets_in(table: str) -> None:
    assert 'iifname != "gblab0" oifname "gblab0" reject' in table


def _may_check() -> bool:
    command = ["nft", "list", "tables"]
    return bool(shutil.which("nft")) and not subprocess.run(command, capture_output=True).returncode


@pytest.mark.skipif(not _may_check(), reason="nft is not here, or not for this user")
@pytest.mark.parametrize("table", [OPEN, CLOSED])
def test_nft_takes_the_tables(table: str) -> None:
    subprocess.run(["nft", "-c", "-f", "-"], input=table, text=True, check=True)


def test_kinds_of_labs_are_not_combined() -> None:
    result = CliRunner().invoke(app, ["up", "--upstream", "--docker"])
    assert isinstance(result.exception, LabError)
    assert "choose one of" in str(result.exception)
