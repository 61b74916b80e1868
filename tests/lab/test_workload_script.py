"""What the containers of a verification run, with the simulated driver."""

from __future__ import annotations

import subprocess

import pytest

from gpuboot.config.settings import parse_settings
from gpuboot.verify.pod_results import device_runs, listed_devices
from gpuboot.verify.workload_pods import GpuContainer, gpu_pod
from lab.gpusim.pci_devices import gpu_uuid
from tests.lab.simulated_driver import SEED, VERSION, SimulatedMachine
from tests.unit.evidence import node


def in_a_container(machine: SimulatedMachine) -> tuple[int, str]:
    """What the containers of a verification run, in this machine; it ends instead of sleeping."""
    programs = machine.folder / "programs"
    programs.mkdir()
    (programs / "nvidia-smi").symlink_to(machine.bins / f"nvidia-smi.{VERSION}")
    (programs / "sleep").symlink_to("/bin/true")
    part = GpuContainer("gpu1", "p", "c", count=3)
    manifest = gpu_pod([part], node("gpu1", 3), parse_settings({}))
    script = manifest["spec"]["containers"][0]["command"][2]
    script = script.replace("/cuda-samples/vectorAdd", str(machine.bins / "vectorAdd"))
    result = subprocess.run(
        ["/bin/sh", "-c", script],
        env=machine.env() | {"PATH": str(programs)},
        text=True,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return result.returncode, result.stdout


@pytest.mark.parametrize("broken", [None, 1])
def test_a_container_with_several_gpus_tells_what_each_of_them_did(
    machine: SimulatedMachine, broken: int | None
) -> None:
    machine.load(4, visible=(0, 1, 3))
    if broken is not None:
        machine.inject(f"{broken}.cuda_wrong = 1")
    code, log = in_a_container(machine)
    assert code == 0
    uuids = listed_devices(log)
    assert uuids == tuple(gpu_uuid(SEED, index) for index in (0, 1, 3))
    runs = device_runs(log, uuids)
    assert [run.passed for run in runs.values()] == [index != broken for index in (0, 1, 3)]
    if broken is not None:
        assert "Result verification failed" in runs[gpu_uuid(SEED, broken)].error


def test_a_container_whose_gpus_cannot_be_listed_ends(machine: SimulatedMachine) -> None:
    machine.load(2)
    (machine.folder / "dev/nvidiactl").unlink()
    code, log = in_a_container(machine)
    assert code == 9
    assert "couldn't communicate with the NVIDIA driver" in log
