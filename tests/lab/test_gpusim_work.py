"""Work that programs do on simulated GPUs: its result, its time, and what NVML shows of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from gpuboot.verify.load import load_pods
from lab.gpusim import dcgmproftester
from tests.lab.simulated_driver import SimulatedMachine

# shares as the simulated NVML counts them: 1/10000, by the numbers of nvml/fields.c
SHARES = {"engine": 0, "sm": 1, "dram": 4, "fp64": 5, "fp32": 6}
READ = f"""
import json
for i in range(n.nvmlDeviceGetCount()):
    d = n.nvmlDeviceGetHandleByIndex(i)
    fields = n.nvmlDeviceGetFieldValues(d, [0x51AA0000 + k for k in {list(SHARES.values())}])
    found = dict(zip({list(SHARES)}, [f.value.ullVal / 10000 for f in fields]))
    found["util"] = n.nvmlDeviceGetUtilizationRates(d).gpu
    found["power"] = n.nvmlDeviceGetPowerUsage(d) / 1000
    found["used"] = n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2).used >> 20
    found["rx"] = n.nvmlDeviceGetPcieThroughput(d, 1) * 1024
    found["tx"] = n.nvmlDeviceGetPcieThroughput(d, 0) * 1024
    print(json.dumps(found))
"""
IDLE = {**dict.fromkeys(SHARES, 0.0), "util": 0, "power": 72.0, "used": 0, "rx": 0, "tx": 0}


def read_gpus(machine: SimulatedMachine) -> list[dict[str, float]]:
    return [json.loads(line) for line in machine.pynvml(READ).splitlines()]


def command(kind: load_pods.Kind, seconds: float, gpu: int) -> list[str]:
    """The stand-in of dcgmproftester, as the pods of a load run it."""
    options = ["-t", str(load_pods.FIELDS[kind]), "-d", str(seconds), "-i", str(gpu)]
    return [sys.executable, dcgmproftester.__file__, "--no-dcgm-validation", *options]


@contextmanager
def running(
    machine: SimulatedMachine, kind: load_pods.Kind, seconds: float, gpu: int = 0
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command(kind, seconds, gpu),
        env=machine.env(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def loaded(machine: SimulatedMachine, gpu: int) -> list[dict[str, float]]:
    """What is seen when its load has come to rest."""
    until = time.monotonic() + 15
    before: list[dict[str, float]] = []
    while time.monotonic() < until:
        readings = read_gpus(machine)
        values = (readings[gpu][name] for name in ("fp32", "dram", "rx"))
        if before and any(value > 0.5 for value in values):
            return readings
        before = readings
        time.sleep(0.7)
    pytest.fail(f"no load: {before}")


LOADS: Mapping[load_pods.Kind, Mapping[str, tuple[float, float]]] = {
    "compute": {"sm": (0.8, 1), "fp32": (0.7, 1), "dram": (0, 0.1), "util": (80, 100)},
    "memory": {"sm": (0.8, 1), "fp32": (0, 0.1), "dram": (0.7, 1), "used": (2048, 2048)},
    "transfer": {"sm": (0, 0), "dram": (0.01, 0.05), "rx": (30e9, 51e9), "tx": (30e9, 51e9)},
}


@pytest.mark.parametrize("kind", LOADS)
def test_work_of_each_kind_is_seen_on_its_gpu_and_on_no_other(
    machine: SimulatedMachine, kind: load_pods.Kind
) -> None:
    machine.load(3)
    with running(machine, kind, 60, gpu=1):
        readings = loaded(machine, 1)
    wrong_values = {
        name: readings[1][name]
        for name, (minimum, maximum) in LOADS[kind].items()
        if not minimum <= readings[1][name] <= maximum
    }
    assert not wrong_values, readings[1]
    assert readings[0] == readings[2] == IDLE


def test_load_ends_with_a_program_that_is_killed(machine: SimulatedMachine) -> None:
    machine.load(1)
    with running(machine, "memory", 60) as process:
        loaded(machine, 0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert read_gpus(machine) == [IDLE]


def test_two_programs_on_a_gpu_are_both_seen(machine: SimulatedMachine) -> None:
    machine.load(1)
    with running(machine, "memory", 60), running(machine, "transfer", 60):
        loaded(machine, 0)
        time.sleep(1.5)
        reading = read_gpus(machine)[0]
    assert reading["rx"] > 30e9
    assert reading["dram"] > 0.7
    assert reading["used"] == 2048 + 128


def test_what_the_program_counts_is_what_the_simulated_gpu_does(machine: SimulatedMachine) -> None:
    """Its speeds: 60 TFLOP/s, 2.8 TB/s, and 50 GB/s in each direction; less what Python takes."""
    machine.load(1)
    peak_speeds: dict[load_pods.Kind, float] = {"compute": 60e3, "memory": 2.8e3, "transfer": 100}
    for kind, speed in peak_speeds.items():
        with running(machine, kind, 1.5) as process:
            out, _ = process.communicate(timeout=30)
        last = re.search(r"\(([\d.]+) (gflops|GB/s)\)$", out.rstrip())
        assert last, out
        assert 0.5 * speed < float(last[1]) <= 1.01 * speed, (kind, out)
        assert process.returncode == 0


@pytest.mark.parametrize("kind", ["compute", "memory"])
def test_a_wrong_result_ends_the_program(machine: SimulatedMachine, kind: load_pods.Kind) -> None:
    machine.load(1)
    machine.inject("0.cuda_wrong = 1")
    with running(machine, kind, 1) as process:
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "failed: wrong result" in out.splitlines()[-1]


def test_a_gpu_that_is_lost_ends_the_program(machine: SimulatedMachine) -> None:
    machine.load(1)
    with running(machine, "compute", 60) as process:
        loaded(machine, 0)
        machine.inject("0.lost = 1")
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "CUDA_ERROR_UNKNOWN" in out


def test_a_load_that_is_set_and_work_add_up(machine: SimulatedMachine) -> None:
    machine.load(1)
    machine.inject("0.util = 20")
    with running(machine, "memory", 60):
        reading = loaded(machine, 0)[0]
    assert reading["util"] > 80
    assert reading["used"] == 81559 // 2 + 2048


def test_without_a_driver_the_program_says_so(machine: SimulatedMachine) -> None:
    result = subprocess.run(
        command("compute", 1, 0),
        env=machine.env(),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stdout.startswith("failed: cuInit: CUDA_ERROR_NO_DEVICE")


def test_its_kernels_count_what_they_say() -> None:
    """Arithmetic that is counted is in the PTX; sums stay where single precision is exact."""
    assert dcgmproftester.PTX.count("fma.rn.f32") * 2 == dcgmproftester.FLOP_OF_STEP
    assert 8 * dcgmproftester.STEPS + 3 < 2**24
    assert 32 * dcgmproftester.STEPS + 6 < 2**24
    assert set(dcgmproftester.WORK) == set(load_pods.FIELDS.values())
