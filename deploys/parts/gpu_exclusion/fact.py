"""GPUs of the loaded NVIDIA driver, and those that it was told to leave out."""

import shlex
from dataclasses import dataclass

from deploys.engine.framed import Framed
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.pci import PciDevice

# the file of a GPU: nv_procfs_read_gpu_info of open-gpu-kernel-modules, nv-procfs.c
_SCRIPT = """\
for file in /proc/driver/nvidia/gpus/*/information; do
  if [ -r "$file" ]; then
    slot=${file%/information} slot=${slot##*/}
    printf 'gpu %s %s %s\\n' "$slot" "$(cat "/sys/bus/pci/devices/$slot/device")" "$(
      awk -F ':[ \\t]*' '$1 == "GPU UUID" { uuid = $2 } $1 == "GPU Excluded" { out = $2 }
        END { print uuid, out }' "$file")"
  fi
done
"""


@dataclass(frozen=True)
class GpuExclusionState:
    """GPUs of the loaded driver; none where none is loaded.

    + excluded: UUIDs that it leaves out now
    + text: of the file that names them for the next time it is loaded; "" for none
    """

    gpus: tuple[PciDevice, ...] = ()
    excluded: tuple[str, ...] = ()
    text: str = ""


class GpuExclusion(Framed[GpuExclusionState]):
    """Reads the driver's own list of GPUs and one file of its module's options."""

    default = GpuExclusionState

    def command(self, path: str) -> str:
        """`path`: of the file."""
        quoted = shlex.quote(path)
        return f"if test -e {quoted}; then sed 's/^/text /' {quoted}; fi\n{_SCRIPT}"

    def process(self, output: list[str]) -> GpuExclusionState:
        values = Fields(output, separator=" ", last=None)
        rows = [[*line.split(), ""][:4] for line in values.all("gpu")]
        return GpuExclusionState(
            tuple(
                PciDevice(slot, int(device, 16), "0x030200", uuid="" if "?" in uuid else uuid)
                for slot, device, uuid, _ in rows
            ),
            tuple(uuid for _, _, uuid, excluded in rows if excluded == "Yes"),
            "".join(f"{line}\n" for line in values.raw("text")),
        )
