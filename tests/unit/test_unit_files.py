"""Files that start the kubelet and containerd otherwise than their packages do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.test_boot import SHELLS, Machine


@pytest.fixture(params=SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    value: list[str] = request.param
    return value


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("etc/default/kubelet", "KUBELET_EXTRA_ARGS=--max-pods=20\n", "/etc/default/kubelet:1"),
        ("etc/systemd/system/kubelet.service.d/20-a.conf", "[Service]\nExecStart=\nExecStart=/k\n",
         "/etc/systemd/system/kubelet.service.d/20-a.conf:2"),
        ("run/systemd/system/kubelet.service.d/50-b.conf", "[Service]\nEnvironment=A=--v=4\n",
         "/run/systemd/system/kubelet.service.d/50-b.conf:2"),
        ("etc/systemd/system/kubelet.service.d/30-c.conf", "[Service]\nMemoryMax=2G\n", ""),
    ],
)  # fmt: skip
def test_what_starts_the_kubelet_otherwise(
    machine: Machine, shell: list[str], path: str, text: str, place: str
) -> None:
    machine.file(path, text)
    places = [line.place for line in machine.state(shell).kubelet]
    assert places[:1] == ([place] if place else [])


def test_what_starts_containerd_otherwise(machine: Machine, shell: list[str]) -> None:
    folder = "etc/systemd/system/containerd.service.d"
    machine.file(f"{folder}/http-proxy.conf", "[Service]\nEnvironment=HTTPS_PROXY=http://p\n")
    machine.file(f"{folder}/a.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/containerd -l x\n")
    assert [(line.place, line.text) for line in machine.state(shell).containerd] == [
        (f"/{folder}/a.conf:3", "ExecStart=/usr/bin/containerd -l x")
    ]
