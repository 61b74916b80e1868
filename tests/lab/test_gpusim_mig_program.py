"""The program that divides GPUs of Docker hosts, with the lab's nvidia-smi."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from gpuboot.docker import docker_mig
from tests.lab.simulated_driver import VERSION, SimulatedMachine
from tests.lab.test_gpusim_mig import listing


def divide(machine: SimulatedMachine, action: str, layout: str) -> tuple[int, str]:
    """The exit code and all it said. Neither dockerd nor DCGM runs."""
    smi, systemctl = machine.folder / "nvidia-smi", machine.folder / "systemctl"
    if not smi.is_symlink():
        smi.symlink_to(machine.bins / f"nvidia-smi.{VERSION}")
    systemctl.write_text("#!/bin/sh\nexit 3\n")
    systemctl.chmod(0o755)
    program = re.sub(
        r" PATH=\S+", f" PATH={machine.folder}:/usr/bin:/bin", docker_mig.program(), count=1
    )
    program = program.replace("spec=/var/run/cdi", f"spec={machine.folder}")
    result = subprocess.run(
        ["sh", "-c", program, "gpuboot-mig", action, "-"],
        env=machine.env(),
        input=layout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return result.returncode, result.stdout


def profiles(machine: SimulatedMachine) -> list[Counter[str]]:
    return [Counter(item.profile for item in instances) for instances in listing(machine).values()]


@pytest.fixture
def capable(machine: SimulatedMachine) -> SimulatedMachine:
    """Two H100 that MIG can divide."""
    machine.load(2)
    for line in ("mig = 1", "pci_device_id = 0x2330", "memory_mib = 81559"):
        machine.inject(line)
    return machine


def test_layouts_one_after_the_other(capable: SimulatedMachine) -> None:
    half = "0 3g.40gb 2g.20gb 1g.10gb 1g.10gb+me\n1\n"
    second_layout = "0 1g.20gb 1g.20gb 1g.20gb 1g.20gb\n1 4g.40gb 3g.40gb\n"
    for layout in (half, second_layout, half, "0\n1\n"):
        code, output = divide(capable, "apply", layout)
        assert code == 0, output
        expected = [Counter(line.split()[1:]) for line in layout.splitlines()]
        assert profiles(capable) == expected
        assert divide(capable, "look", layout) == (0, "end\tok\n")


def test_what_does_not_fit_is_told_and_tried_again(capable: SimulatedMachine) -> None:
    code, output = divide(capable, "apply", "0 7g.80gb 1g.10gb\n1 7g.80gb\n")
    assert code == 1
    assert "GPU 0 is not divided" in output
    assert "remedy: see what nvidia-smi said above" in output
    assert profiles(capable)[1] == {"7g.80gb": 1}
    _, looked = divide(capable, "look", "0 1g.10gb\n1 7g.80gb\n")
    assert looked == "gpu\t0 7g.80gb\nend\tok\n"
    assert divide(capable, "apply", "0 1g.10gb\n1 7g.80gb\n")[0] == 0


def test_a_gpu_that_mig_cannot_divide_is_told(machine: SimulatedMachine) -> None:
    machine.load(1)
    assert divide(machine, "look", "0\n") == (0, "end\tok\n")
    code, output = divide(machine, "apply", "0 1g.10gb\n")
    assert code == 1
    assert "Not Supported" in output
