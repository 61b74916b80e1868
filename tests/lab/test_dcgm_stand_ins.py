"""The stand-ins of DCGM on hosts, and the program of ours that asks them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboot.hosts import dcgm_engine
from lab.build.debs import SIMULATED
from lab.gpusim.packages import DCGM_DIR, DCGMI, dcgm_debs

UUIDS = [f"GPU-51aa0001-5157-4c6c-8abc-00000000000{number}" for number in range(2)]
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *ecc*) printf '0\\n0\\n' ;;
  *driver_version*) printf '595.112.07\\n595.112.07\\n' ;;
esac
"""


class Machine:
    """A machine of two simulated GPUs, its engine, and gpuboot-dcgm-check."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for number, uuid in enumerate(UUIDS):
            folder = root / f"gpus/0000:1{number}:00.0"
            folder.mkdir(parents=True)
            (folder / "information").write_text(f"Model: \t\t SIMULATED\nGPU UUID: \t {uuid}\n")
        (root / "host-engine").touch()
        (root / "nvidia-smi").write_text(NVIDIA_SMI)
        (root / "nvidia-smi").chmod(0o755)
        shutil.copy(DCGMI, root / "dcgmi")
        self.environment = {
            **os.environ,
            "SIM_DCGM_RUN": str(root),
            "SIM_DCGM_ENGINE": str(root / "host-engine"),
            "SIM_GPU_CONF": str(root / "faults"),
            "SIM_GPU_PROC": str(root / "gpus"),
            "PATH": f"{root}:{os.environ['PATH']}",
        }
        self.faults()
        config = root / "dcgm.conf"
        configuration = f"metrics={root}/metrics\nresults={root}/results\nnode=gpu1\nsettle_s=0\n"
        config.write_text(configuration)
        program = dcgm_engine.program().replace("/etc/gpuboot/dcgm.conf", str(config))
        self.program = re.sub(r"PATH=\S+", f"PATH={root}:/usr/bin:/bin", program, count=1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def faults(self, *lines: str) -> None:
        faults_text = "".join(f"{line} @ 1764000000000\n" for line in lines)
        (self.root / "faults").write_text(f"count = 2\n[faults]\n{faults_text}")

    def start(self) -> subprocess.Popen[str]:
        options = ["-n", "--service-account", "nvidia-dcgm", "-b", "127.0.0.1", "-p"]
        engine = subprocess.Popen(
            ["perl", str(DCGM_DIR / "nv-hostengine"), *options, str(self.port)],
            env=self.environment, text=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + 60
        while not (self.root / "nv-hostengine.pid").exists():
            assert time.monotonic() < end
            assert engine.poll() is None
            time.sleep(0.05)
        return engine

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )

    def query(self, question: str) -> subprocess.CompletedProcess[str]:
        return self.run("sh", "-c", self.program, "gpuboot-dcgm-check", question)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def engine(machine: Machine) -> Iterator[subprocess.Popen[str]]:
    started = machine.start()
    yield started
    started.terminate()
    started.wait(30)


@pytest.mark.usefixtures("engine")
def test_a_machine_without_faults_is_well(machine: Machine) -> None:
    result = machine.query("health")
    assert "Health monitor systems set successfully." in result.stdout
    assert result.stdout.endswith("health: all well\n"), result.stderr
    result = machine.query("diag")
    assert (result.stdout, result.returncode) == ("diag: all well\n", 0), result.stderr
    assert (machine.root / "results/diag.json").read_text().count("SIMULATED") == 1


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("1.health_nvlink = 10", "health: NVLINK of GPU 1 {}: warning"),
        ("1.health_mem = 20", "health: MEM of GPU 1 {}: failure"),
        (
            "1.ecc_dbe = 2",
            "health: MEM of GPU 1 {}: failure: SIMULATED: Detected 1 volatile double-bit",
        ),
        ("1.row_remap_failure = 1", "health: MEM of GPU 1 {}: failure"),
        ("1.recovery_action = 1", "health: DRIVER of GPU 1 {}: failure"),
        ("1.row_remap_pending = 1", "diag: software of GPU 1 {}: failure"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_a_fault_of_a_gpu_is_told(machine: Machine, fault: str, expected: str) -> None:
    machine.faults(fault)
    result = machine.query(expected.partition(":")[0])
    [line] = [line for line in result.stdout.splitlines() if "watches are set" not in line]
    assert line.startswith(expected.format(UUIDS[1])), result.stderr
    machine.faults(fault, fault.partition("=")[0] + "= default")
    assert machine.query(expected.partition(":")[0]).stdout.endswith("all well\n")


@pytest.mark.usefixtures("engine")
def test_a_gpu_that_fell_off_the_bus_is_not_listed(machine: Machine) -> None:
    machine.faults("0.lost = 1")
    assert machine.query("health").returncode == 0
    rows = (machine.root / "results/health.tsv").read_text()
    assert UUIDS[1] in rows
    assert UUIDS[0] not in rows


def test_watches_end_with_their_engine(machine: Machine) -> None:
    first = machine.start()
    assert "watches are set" in machine.query("health").stdout
    assert "watches are set" not in machine.query("health").stdout
    first.terminate()
    first.wait(30)
    result = machine.query("health")
    assert result.returncode == 1
    assert "Unable to connect to host engine" in result.stderr
    second = machine.start()
    assert machine.run("dcgmi", "health", "-c", "-j").returncode == 253
    assert "watches are set" in machine.query("health").stdout
    second.terminate()
    second.wait(30)


@pytest.mark.usefixtures("engine")
def test_the_engine_keeps_connections_and_ends_them_with_itself(
    machine: Machine, engine: subprocess.Popen[str]
) -> None:
    with socket.create_connection(("127.0.0.1", machine.port), 10) as client:
        client.settimeout(30)
        engine.terminate()
        try:
            is_closed = client.recv(1) == b""
        except ConnectionResetError:  # it had not accepted yet
            is_closed = True
        assert is_closed


def test_packages_are_named_as_upstream_s_and_say_simulated() -> None:
    debs = {deb.name: deb for deb in dcgm_debs("4.6.1")}
    prefix = "datacenter-gpu-manager-4"
    assert {f"{prefix}-core", f"{prefix}-cuda13", f"{prefix}-proprietary-cuda13"} < set(debs)
    assert {deb.version for deb in debs.values()} == {"1:4.6.1-1"}
    assert all(SIMULATED in deb.description for deb in debs.values())
