"""What a person gets who has to repair a node: files beside those of a diagnosis."""

from collections.abc import Mapping

from gpuboot.config import redaction
from gpuboot.repair.repair_model import Repair, dump

_README = """\
Node {node} is out of service, and a person has to repair it: {why}

repair.json       what was seen and done
nvidia-smi-q.txt  its GPUs by nvidia-smi: serial and part numbers, ECC, remapped rows
kernel.txt        the driver's messages in the kernel's log, with XIDs

GPUs: {gpus}
NVIDIA asks besides for nvidia-bug-report.log.gz: run `nvidia-bug-report.sh` as root on {node}.
Mended: gpuboot verify INVENTORY, then `kubectl taint node {node} gpu-quarantine-` and
`kubectl uncordon {node}`.
"""


def handed_files(node: str, repair: Repair, looks: Mapping[str, str]) -> dict[str, str]:
    """Files by their names in the bundle, without secrets.

    + looks: what the node's machine printed, by file name
    """
    mask = redaction.masker()
    readme = _README.format(
        node=node, why=repair.note or repair.why, gpus=", ".join(repair.gpus) or "all of the node"
    )
    files = {"README.txt": readme, "repair.json": dump(repair) + "\n", **looks}
    return {f"{node}/{name}": mask(text) for name, text in files.items()}
