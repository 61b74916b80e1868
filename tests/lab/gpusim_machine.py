"""A machine with simulated GPUs in a folder, enough for `gpu-sim` and the libraries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lab.gpusim.pci_devices import HARDWARE_DIR, STATE_DIR, install_pci_devices

VERSION = "595.112.07"
GPU_SIM = HARDWARE_DIR / "gpu-sim"


@dataclass(frozen=True)
class Machine:
    """The root folder of a machine whose driver was loaded 100 s ago."""

    root: Path
    bins: Path

    @property
    def conf(self) -> Path:
        return self.root / f"usr/lib/firmware/nvidia/{VERSION}/gsp_sim.bin"

    def load(self, ago: int = 100) -> None:
        """Load the driver as `driver/load` does, without what needs a real machine."""
        hardware = (self.root / STATE_DIR / "hardware.conf").read_text()
        inforom = self.root / STATE_DIR / "inforom"
        remembered = inforom.read_text() if inforom.exists() else ""
        self.conf.write_text(
            f"{hardware}driver_version = {VERSION}\nloaded_at = {int(time.time()) - ago}\n"
            f"[faults]\n{remembered}"
        )

    def sim(self, *arguments: object, code: int = 0) -> str:
        result = subprocess.run(
            [GPU_SIM, *map(str, arguments)],
            env={"PATH": os.environ["PATH"], "GPU_SIM_ROOT": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == code, result.stdout
        return result.stdout

    def inject(self, line: str, ago: float) -> None:
        """Append a fault that was injected `ago` seconds before now."""
        with self.conf.open("a") as stream:
            stream.write(f"{line} @ {int((time.time() - ago) * 1000)}\n")

    def smi(self, *fields: str, gpu: int = 0) -> list[str]:
        result = subprocess.run(
            [
                self.bins / f"nvidia-smi.{VERSION}",
                f"--query-gpu={','.join(fields)}",
                "--format=csv,noheader,nounits",
                "-i",
                str(gpu),
            ],
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return result.stdout.strip().split(", ")

    def nvml(self, expression: str) -> list[int]:
        """Numbers out of nvidia-ml-py, `n`; `d` is GPU 0 and `f(i)` reads a field by number."""
        code = (
            "import pynvml as n\nn.nvmlInit()\nd = n.nvmlDeviceGetHandleByIndex(0)\n"
            "def f(i):\n"
            "    v = n.nvmlDeviceGetFieldValues(d, [i])[0]\n"
            "    return v.value.ullVal if v.nvmlReturn == 0 else -v.nvmlReturn\n"
            f"print(*({expression}))"
        )
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return [int(word) for word in result.stdout.split()]

    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "SIM_GPU_CONF": str(self.conf),
            "SIM_GPU_DEV": str(self.root / "dev"),
            "LD_LIBRARY_PATH": str(self.root / "lib"),
        }


def make_machine(root: Path, bins: Path, gpus: int = 2) -> Machine:
    """A machine in the folder `root` with the outputs of `lab.gpusim.builds.build` in `bins`."""
    new_machine = Machine(root, bins)
    install_pci_devices(root, gpus, 0x51AA0001)
    for folder in (
        "proc/driver/nvidia",
        "dev/nvidia-caps",
        "lib",
        new_machine.conf.parent.relative_to(root),
    ):
        (root / folder).mkdir(parents=True)
    (root / "proc/driver/nvidia/version").write_text("NVRM version: SIMULATED\n")
    for node in ("nvidiactl", "nvidia-caps/nvidia-cap2", *(f"nvidia{i}" for i in range(gpus))):
        (root / "dev" / node).touch()
    (root / "lib/libnvidia-ml.so.1").symlink_to(bins / f"libnvidia-ml.so.{VERSION}")
    new_machine.load()
    return new_machine
