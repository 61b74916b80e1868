"""The NVIDIA driver as a host has it now."""

from dataclasses import dataclass

from deploys.engine.framed import Framed
from deploys.parts.cluster.cordon import CORDON_MARK
from deploys.parts.driver.nvidia_fact import BOUNDED
from gpuboot.hosts import loaded_driver
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.module_loading import CONFLICTING


@dataclass(frozen=True)
class DriverState:
    """The driver of this moment.

    + loaded: version in the kernel, "" for none; open_modules: its flavour
    + module: version of the module on disk, "" where modinfo cannot tell
    + conflicting: the other driver that is loaded and holds GPUs, "" for none
    + gpus: UUIDs that nvidia-smi lists
    + smi: what nvidia-smi said when it failed
    + cordoned_by_gpuboot: a run that did not end has cordoned this node
    """

    loaded: str = ""
    open_modules: bool = False
    module: str = ""
    conflicting: str = ""
    uvm: bool = False
    gpus: tuple[str, ...] = ()
    smi: str = ""
    cordoned_by_gpuboot: bool = False


class Driver(Framed[DriverState]):
    """Loaded and installed driver, and the GPUs that nvidia-smi shows within a time in seconds."""

    default = DriverState

    def command(self, timeout_s: int) -> str:
        return BOUNDED + (
            "if test -r /proc/driver/nvidia/version; then "
            "head -n 1 /proc/driver/nvidia/version | sed 's/^/loaded /'; fi; "
            'module=$(modinfo -F version nvidia 2>/dev/null) && echo "module $module"; '
            f"for name in {' '.join(CONFLICTING)}; do "
            'test -d /sys/module/$name && echo "conflicting $name"; done; '
            "grep -qs nvidia-uvm /proc/devices && echo uvm; "
            "test -e /dev/nvidia-uvm && echo uvm; "
            f"test -e {CORDON_MARK} && echo cordoned_by_gpuboot; "
            "if command -v nvidia-smi >/dev/null; then "
            f"list=$(bounded {timeout_s} nvidia-smi -L); "
            # its exit code is not 0 for a warning, or for a lost GPU after it has listed the others
            "echo \"$list\" | sed -n 's/.*(UUID: \\(GPU-[^)]*\\)).*/gpu \\1/p'; "
            'case "$list" in *exit=0) ;; '
            f"*exit=124) echo 'smi nvidia-smi -L did not answer within {timeout_s} s' ;; "
            "*) echo \"$list\" | grep -v 'UUID:\\|^exit=\\|^$' | head -n 3 | sed 's/^/smi /' ;; "
            "esac; fi; true"
        )

    def process(self, output: list[str]) -> DriverState:
        values = Fields(output, separator=" ", last=None)
        loaded, is_open = loaded_driver.parse(values.first("loaded"))
        return DriverState(
            loaded=loaded,
            open_modules=is_open,
            module=values.first("module"),
            conflicting=values.first("conflicting"),
            uvm="uvm" in values,
            gpus=tuple(values.all("gpu")),
            smi=" ".join(values.all("smi")),
            cordoned_by_gpuboot="cordoned_by_gpuboot" in values,
        )
