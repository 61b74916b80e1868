"""A folder with the simulated driver in it, as a machine of the lab has it; for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VERSION = "595.112.07"
SEED = 0x51AA0001
NO_LIBRARIES = "/nonexistent"
MONITOR = 2  # the capability that shows all MIG devices


@dataclass(frozen=True)
class SimulatedMachine:
    """A configuration, device nodes (plain files) and the libraries, in a folder of the test."""

    bins: Path
    folder: Path

    @property
    def conf(self) -> Path:
        return self.folder / "gsp_sim.bin"

    def load(
        self, gpus: int, visible: tuple[int, ...] | None = None, version: str = VERSION
    ) -> None:
        dev = self.folder / "dev"
        dev.mkdir()
        self.offer_capabilities(MONITOR)
        for name in ("ctl", *map(str, range(gpus) if visible is None else visible)):
            (dev / f"nvidia{name}").touch()
        self.conf.write_text(
            f"count = {gpus}\nuuid_seed = {SEED:#x}\ndriver_version = {version}\n[faults]\n"
        )

    def offer_capabilities(self, *minors: int) -> None:
        """The capabilities of MIG that there are, and no others."""
        folder = self.folder / "dev/nvidia-caps"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for minor in minors:
            (folder / f"nvidia-cap{minor}").touch()

    def inject(self, line: str) -> None:
        with self.conf.open("a") as stream:
            stream.write(f"{line}\n")

    def env(self, libraries: str | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "SIM_GPU_CONF": str(self.conf),
            "SIM_GPU_DEV": str(self.folder / "dev"),
            "LD_LIBRARY_PATH": libraries or str(self.folder / "lib"),
        }

    def run(
        self, program: str, *arguments: str, libraries: str | None = None, **variables: str
    ) -> tuple[int, str]:
        """The exit code and the output of one of the built programs.

        + variables: in its environment
        """
        result = subprocess.run(
            [self.bins / program, *arguments],
            env=self.env(libraries) | variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
        return result.returncode, result.stdout

    def smi(self, *arguments: str, libraries: str | None = None) -> tuple[int, str]:
        return self.run(f"nvidia-smi.{VERSION}", *arguments, libraries=libraries)

    def pynvml(self, code: str) -> str:
        """What `code` prints with nvidia-ml-py initialized as `n` in a process of its own."""
        result = subprocess.run(
            [sys.executable, "-c", f"import pynvml as n\nn.nvmlInit()\n{code}"],
            env=self.env(),
            text=True,
            capture_output=True,
            timeout=20,
            check=False,
        )
        return result.stdout + result.stderr
