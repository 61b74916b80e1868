"""NVLink fabrics: which machines need a fabric manager of their own, and what goes with it.

Up to NVLink 4 the NVSwitches of a machine are PCI devices. With NVLink 5 (HGX B200 and later) they
are reached by InfiniBand management through ConnectX bridges of the board, which say SW_MNG in
their VPD: NVIDIA/gpu-driver-container, `_assert_nvlink5_system`. There the fabric manager needs
NVIDIA's subnet manager, `ibstat` and the kernel's ib_umad; without them CUDA answers 802.

The racks of GB200 and GB300 (NVL72) have their switches, and the fabric manager, in trays of their
own: nothing of it runs on the nodes. Their IMEX service, for memory across nodes, is the site's.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from gpuboot.hosts.node_state import NodeState

Fabric = Literal["", "nvswitch", "nvlink5"]

# PCI device ids of the GPUs of HGX boards with NVLink 5, from the PCI id database (GB100, GB110):
# B200, HGX B200 168GB, B100, B300 SXM6 AC
_HGX_NVLINK5 = frozenset({0x2901, 0x2909, 0x29BC, 0x3182})
_BOARD = 8  # GPUs of such a board; a virtual machine may have some of them, and no switch
# of NVIDIA's repository and the distribution's; each is of its own versions, unlike the driver's
_NVLINK5_PACKAGES = ("infiniband-diags", "nvlsm")
_PACKAGE = "nvidia-fabricmanager"
MODULES = ("mlx5_ib", "ib_umad")


def detected(state: NodeState) -> Fabric:
    """The fabric that this machine itself has to manage; "" for none."""
    boards = [gpu for gpu in state.gpus if gpu.device in _HGX_NVLINK5]
    if boards and (state.nvlink_bridges or len(boards) >= _BOARD):
        return "nvlink5"
    return "nvswitch" if state.nvswitches else ""


def managed(state: NodeState, setting: str) -> Fabric:
    """The fabric for which a fabric manager is installed.

    + setting: `settings.driver.fabric_manager`
    """
    if setting == "never":
        return ""
    if setting == "always" and not detected(state):
        return "nvlink5" if any(gpu.device in _HGX_NVLINK5 for gpu in state.gpus) else "nvswitch"
    return detected(state)


def packages(fabric: Fabric) -> Sequence[str]:
    """What the fabric manager needs beside it, at any version."""
    return _NVLINK5_PACKAGES if fabric == "nvlink5" else ()


def problems(state: NodeState, setting: str) -> Iterator[tuple[str, str]]:
    """Cause and remedy where the kernel cannot reach the switches."""
    missing = [name for name in MODULES if name not in state.kernel_features]
    if managed(state, setting) == "nvlink5" and missing:
        yield (
            f"its NVSwitches (NVLink 5) are managed by InfiniBand, and its kernel {state.kernel} "
            f"lacks {', '.join(missing)}: CUDA would answer 802",
            f"install linux-modules-extra-{state.kernel} (cloud kernels come without)",
        )


def earlier_problems(state: NodeState, package: str) -> Iterator[tuple[str, str]]:
    """Cause and remedy where apt cannot put a fabric manager in place of the one that is there.

    NVIDIA's packages with a branch in their names conflict with `nvidia-fabricmanager`, so that apt
    removes them in the same transaction: debian/templates/control.in of
    NVIDIA/apt-packaging-fabric-manager. It removes none that is held, whatever its options are, and
    of two that do not conflict dpkg refuses the second, for the files that both have.

    + package: the one to install
    """
    earlier = re.compile(rf"{_PACKAGE}(-\d+)?")
    for name, conflicts in sorted(state.fabric_managers.items()):
        if name == package or not earlier.fullmatch(name):
            continue
        if name in state.holds:
            yield (
                f"the package {name} is held, and {package} cannot be installed beside it",
                f"run `apt-mark unhold {name}` there: apt then replaces it",
            )
        elif name != _PACKAGE and _PACKAGE not in re.split(r"[\s,]+", conflicts):
            yield (
                f"the package {name} has the files of {package}, and does not say that they "
                "conflict: dpkg would stop in the middle",
                f"run `apt-get remove {name}` there while no GPU is in use",
            )


def unready(state: str, status: str) -> str:
    """What keeps a GPU out of its NVLink fabric; "" for one that is in it, or has none.

    + state, status: nvidia-smi's fabric.state and fabric.status
    """
    if state == "Completed":
        return "" if status in ("Success", "N/A", "[N/A]") else f"Completed, status {status}"
    return state if state in ("Not Started", "In Progress") else ""
