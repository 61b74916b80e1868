"""What the pods of a load run, with the simulated driver and, in its place, NVIDIA's program."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuboot.config.settings import Settings
from gpuboot.verify.load import load_answers, load_pods
from gpuboot.verify.load.load_pods import LoadRequest
from lab.gpusim import dcgmproftester
from lab.gpusim.pci_devices import gpu_uuid
from tests.lab.simulated_driver import SEED, VERSION, SimulatedMachine
from tests.unit.evidence import node

USED = ("sh", "date", "cat", "sleep")
# which of them the driver's CUDA refuses, as NVIDIA's does
TESTER = """#!/bin/sh
echo "asked for $*"
case $0 in *{refused}) echo "Wrong version of dcgmproftester is used."; exit 244 ;; esac
echo "Worker 0:0[$3]: generated ???, dcgm 0.000 (612391.2 gflops)."
"""


def programs(machine: SimulatedMachine) -> Path:
    folder = machine.folder / "programs"
    folder.mkdir()
    (folder / "nvidia-smi").symlink_to(machine.bins / f"nvidia-smi.{VERSION}")
    for name in USED:
        (folder / name).symlink_to(f"/bin/{name}")
    return folder


def in_a_pod(
    machine: SimulatedMachine, folder: Path, begin_by: float | None = None, uuid: str = ""
) -> tuple[int, str]:
    """Its exit code and log."""
    load_request = LoadRequest(kind="compute", seconds=2, uuid=uuid)
    late = time.time() + 60 if begin_by is None else begin_by
    manifest = load_pods.pod(node("gpu1", 2), 2, load_request, int(late), Settings())
    result = subprocess.run(
        manifest["spec"]["containers"][0]["command"],
        env=machine.env() | {"PATH": str(folder)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return result.returncode, result.stdout


def with_stand_in(folder: Path) -> Path:
    """The lab's own, of `lab.gpusim.dcgmproftester`."""
    tester = folder / "dcgmproftester13"
    tester.write_text(f'#!/bin/sh\nexec {sys.executable} {dcgmproftester.__file__} "$@"\n')
    tester.chmod(0o755)
    return folder


def with_tester(folder: Path, name: str, refusal: str = "nothing") -> Path:
    (folder / name).write_text(TESTER.replace("{refused}", refusal))
    (folder / name).chmod(0o755)
    return folder


def test_every_gpu_of_the_pod_is_loaded(machine: SimulatedMachine) -> None:
    machine.load(4, visible=(1, 3))
    code, log = in_a_pod(machine, with_stand_in(programs(machine)))
    assert code == 0, log
    gpus = {gpu.uuid: gpu for gpu in load_answers.read("gpu1", log)}
    assert set(gpus) == {gpu_uuid(SEED, 1), gpu_uuid(SEED, 3)}
    for gpu in gpus.values():
        assert (gpu.program, gpu.ended, gpu.error) == ("dcgmproftester13", True, "")
        assert float(gpu.said.partition("(")[2].removesuffix(" gflops)")) > 1e3


def test_one_gpu_alone(machine: SimulatedMachine) -> None:
    machine.load(3)
    folder = with_stand_in(programs(machine))
    _, log = in_a_pod(machine, folder, uuid=gpu_uuid(SEED, 2))
    assert [gpu.uuid for gpu in load_answers.read("gpu1", log)] == [gpu_uuid(SEED, 2)]
    _, log = in_a_pod(machine, folder, uuid="GPU-of-another-pod")
    assert load_answers.read("gpu1", log) == []


def test_a_gpu_that_computes_wrong_is_told(machine: SimulatedMachine) -> None:
    machine.load(2)
    machine.inject("1.cuda_wrong = 1")
    code, log = in_a_pod(machine, with_stand_in(programs(machine)))
    errors = {gpu.uuid: gpu.error for gpu in load_answers.read("gpu1", log)}
    assert errors[gpu_uuid(SEED, 0)] == ""
    assert errors[gpu_uuid(SEED, 1)].startswith("failed: wrong result of thread 0")
    assert code == 0


@pytest.mark.parametrize(
    ("testers", "refusal", "program"),
    [
        (("dcgmproftester12", "dcgmproftester13"), "nothing", "dcgmproftester13"),
        (("dcgmproftester12", "dcgmproftester13"), "13", "dcgmproftester12"),
    ],
)
def test_the_tester_that_the_driver_takes_is_used(
    machine: SimulatedMachine, testers: tuple[str, ...], refusal: str, program: str
) -> None:
    machine.load(2)
    folder = programs(machine)
    for name in testers:
        with_tester(folder, name, refusal)
    _, log = in_a_pod(machine, folder)
    gpus = {gpu.uuid: gpu for gpu in load_answers.read("gpu1", log)}
    assert {gpu.program for gpu in gpus.values()} == {program}
    assert all(gpu.ended and not gpu.error for gpu in gpus.values())
    for number, gpu in enumerate((gpu_uuid(SEED, 0), gpu_uuid(SEED, 1))):
        assert f"{gpu}: asked for --no-dcgm-validation -t 1004 -d 2 -i {number}" in log
        assert "612391.2 gflops" in gpus[gpu].said


@pytest.mark.parametrize("testers", [(), ("dcgmproftester13",)])
def test_an_image_without_one_that_runs_is_an_error(
    machine: SimulatedMachine, testers: tuple[str, ...]
) -> None:
    machine.load(1)
    folder = programs(machine)
    for name in testers:
        with_tester(folder, name, "13")
    _, log = in_a_pod(machine, folder)
    [gpu] = load_answers.read("gpu1", log)
    assert "the image has no dcgmproftester that runs with this driver" in gpu.error
    assert gpu.ended


def test_a_pod_that_starts_too_late_does_nothing(machine: SimulatedMachine) -> None:
    machine.load(1)
    code, log = in_a_pod(machine, with_stand_in(programs(machine)), begin_by=time.time() - 1)
    assert code == 1
    assert "too late" in log
    assert load_answers.read("gpu1", log) == []


def test_without_a_driver_the_pod_ends(machine: SimulatedMachine) -> None:
    machine.load(1)
    (machine.folder / "dev/nvidiactl").unlink()
    code, log = in_a_pod(machine, with_stand_in(programs(machine)))
    assert code == 9
    assert "couldn't communicate with the NVIDIA driver" in log
