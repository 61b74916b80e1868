"""What driver, toolkit and containerd of a GPU node say, by one command."""

from __future__ import annotations

from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from gpuboot.verify.gpu_state import GpuState, parse

_FILES = resources.files("deploys.parts.driver")
# the shell function `bounded`
BOUNDED = _FILES.joinpath("bounded.sh").read_text()
SCRIPT = BOUNDED + _FILES.joinpath("nvidia_fact.sh").read_text()


class NvidiaFact(Framed[GpuState]):
    """The GPUs as nvidia-smi, CDI and containerd have them. Needs root for containerd's socket."""

    @override
    def command(self) -> str:
        return SCRIPT

    @override
    def process(self, output: list[str]) -> GpuState:
        return parse(output)
