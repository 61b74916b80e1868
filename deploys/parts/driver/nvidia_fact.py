"""What driver, toolkit and containerd of a GPU node say, by one command."""

from deploys.engine.framed import Framed, script
from gpuboot.verify.gpu_state import GpuState
from gpuboot.verify.gpu_state import parse as parse_gpu_state

# the shell function `bounded`
BOUNDED = script("driver/bounded.sh")
SCRIPT = BOUNDED + script("driver/nvidia_fact.sh")


class NvidiaFact(Framed[GpuState]):
    """The GPUs as nvidia-smi, CDI and containerd have them. Needs root for containerd's socket."""

    parse = parse_gpu_state

    def command(self) -> str:
        return SCRIPT
