"""The stand-ins of a deep verification: what they print can be read, and follows faults."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.verify.deep import dcgm_diag, nccl_tests, nvbandwidth
from gpuboot.verify.deep.nccl_tests import network
from lab.build.image_parts import SHELL
from tests.documents import ROOT

STAND_INS = ROOT / "lab/gpusim/deep"
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *ecc*) printf '0\\n%s\\n' "$ERRORS" ;;
  *driver_version*) printf '595.112.07\\n595.112.07\\n' ;;
  *width*) printf '16\\n%s\\n' "$WIDTH" ;;
  *index*) printf '0\\n1\\n' ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with an nvidia-smi that knows two GPUs, and the commands that images have."""
    path = tmp_path / "nvidia-smi"
    path.write_text(NVIDIA_SMI)
    path.chmod(0o755)
    for name in SHELL:
        if program_path := shutil.which(name):
            (tmp_path / name).symlink_to(program_path)
    return tmp_path


def run_stand_in(programs: Path, *command: str, **values: str) -> str:
    name, *arguments = command
    environment = {
        **os.environ,
        "PATH": str(programs),
        "GPUSIM_DEEP_S": "0",
        "ERRORS": "0",
        "WIDTH": "16",
        **values,
    }
    result = subprocess.run(
        ["sh", str(STAND_INS / name), *arguments],
        env=environment, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert "not found" not in result.stderr, "a pod's log would have it among the answer"
    return result.stdout


def test_dcgmi_fails_the_memory_of_a_gpu_with_errors(programs: Path) -> None:
    report = dcgm_diag.parse(run_stand_in(programs, "dcgmi", "diag", "-r", "3", "-j", ERRORS="2"))
    failed = [(item.test, item.gpu) for item in report.results if item.status == "Fail"]
    assert failed == [("memory", 1)]
    assert "SIMULATED" in report.version
    assert report.driver == "595.112.07"
    short_report = dcgm_diag.parse(run_stand_in(programs, "dcgmi", "diag", "-r", "2", "-j"))
    assert len(short_report.of(0)) < len(report.of(0))


def test_nvbandwidth_is_slow_on_a_narrow_link(programs: Path) -> None:
    report = nvbandwidth.parse(run_stand_in(programs, "nvbandwidth", "-j", WIDTH="8"))
    assert set(report.cases) == set(nvbandwidth.CASES)
    first, second = (report.cases[nvbandwidth.HOST_TO_GPU].of(gpu)[0] for gpu in (0, 1))
    assert second < first / 2 + 1
    assert "SIMULATED" in report.version


def test_all_reduce_is_wrong_without_a_sound_computation(programs: Path) -> None:
    """There is no vectorAdd here, so no GPU computes right."""
    report = nccl_tests.parse(
        run_stand_in(programs, "all_reduce_perf", "-b", "8G", "-e", "8G", "-g", "2")
    )
    assert (len(report.ranks), report.wrong) == (2, 64)


# busybox's, which the images have
NC = f"""#!{sys.executable}
import socket, subprocess, sys
if "-ll" in sys.argv:
    port, program = sys.argv[sys.argv.index("-p") + 1], sys.argv[-1]
    server = socket.create_server(("127.0.0.1", int(port)))
    while True:
        peer, _ = server.accept()
        subprocess.run([program], stdin=peer, stdout=peer)
        peer.close()
host, port = sys.argv[-2:]
try:
    peer = socket.create_connection((host, int(port)), 5)
except OSError:
    sys.exit(1)
peer.sendall(sys.stdin.buffer.read())
peer.shutdown(socket.SHUT_WR)
while data := peer.recv(4096):
    sys.stdout.buffer.write(data)
"""


@pytest.fixture
def cluster(programs: Path) -> Iterator[Path]:
    """The programs of the image, and a pod with sshd at 127.0.0.1."""
    for path in STAND_INS.iterdir():
        shutil.copy(path, programs)
    (programs / "nc").write_text(NC)
    (programs / "nc").chmod(0o755)
    (programs / "key").write_text("secret\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (programs / "config").write_text(f"Host *\n  Port {port}\n  IdentityFile {programs}/key\n")
    sshd = subprocess.Popen(
        [str(programs / "sshd"), "-D", "-p", str(port), "-h", str(programs / "key")],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "GPUSIM_BYTES": "1000"},
    )
    until = time.monotonic() + 20
    while time.monotonic() < until and socket.socket().connect_ex(("127.0.0.1", port)):
        time.sleep(0.05)
    yield programs
    sshd.kill()
    sshd.wait()


def mpirun(cluster: Path, address: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    arguments = f"""--allow-run-as-root --prefix /usr --bind-to none --mca pml ob1 -x PATH -np 4
      -H 10.0.0.1:2,{address}:2 all_reduce_perf -b 1G -e 1G -g 1 -c 1"""
    values = {
        "PATH": f"{cluster}:{os.environ['PATH']}",
        "GPUSIM_DEEP_S": "0",
        "GPUSIM_BYTES": "1000",
        "GPUSIM_SSH_CONFIG": str(cluster / "config"),
    }
    return subprocess.run(
        [str(cluster / "mpirun"), *arguments.split()],
        env={**os.environ, **values}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_mpirun_has_the_gpus_of_both_nodes_and_their_wrong_values(cluster: Path) -> None:
    result = mpirun(cluster)
    report = nccl_tests.parse(result.stdout)
    assert ([device for _, device in report.ranks], report.wrong) == ([0, 1, 0, 1], 128)
    assert network(result.stdout).name == "Socket (SIMULATED)"


def test_mpirun_says_when_a_node_is_silent_or_has_another_key(cluster: Path) -> None:
    result = mpirun(cluster, "127.0.0.9")
    assert (result.returncode, "ssh: connect to host 127.0.0.9 port" in result.stdout) == (
        255,
        True,
    )
    foreign_config = (cluster / "config").read_text().replace("/key", "/config")
    (cluster / "config").write_text(foreign_config)
    assert mpirun(cluster).stdout == "Host key verification failed.\n"
