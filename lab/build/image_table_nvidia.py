"""The images of NVIDIA's, and of what deep verifications run: real where Go modules have them."""

from __future__ import annotations

from pathlib import Path

from lab.build import software
from lab.build.golang import module_version
from lab.build.image_parts import Programs, built_from, python, shell
from lab.build.images import SYMLINK, Image
from lab.build.libraries import Source
from lab.gpusim.builds import GO_MODULE, SOURCES

DCGM_EXPORTER = "4.6.1-4.8.4-distroless"
CUDA_SAMPLE = "vectoradd-cuda12.5.0"
# of deep verifications, as gpuboot's settings name the first two
DCGM = "nvcr.io/nvidia/cloud-native/dcgm:4.6.1-1-ubuntu24.04"
NVBANDWIDTH = "ghcr.io/nvidia/k8s-samples:nvbandwidth-v0.7-8d103163"
NCCL_TESTS = "nvcr.io/nvidia/hpc-benchmarks:25.04"
DEEP_TESTS = SOURCES / "deep"
GPU_OPERATOR = "v26.7.0"
MIG_MANAGER = "v0.15.0"


def images(programs: Programs) -> list[Image]:
    """The images of NVIDIA's registry, which a lab has from nowhere else with simulated GPUs."""
    return [_device_plugin(programs), *_simulated(programs)]


def of_other_registries(programs: Programs) -> list[Image]:
    """The images for NVIDIA's GPUs from other registries."""
    return [_deep_test(programs, NVBANDWIDTH, "nvbandwidth")]


def _device_plugin(programs: Programs) -> Image:
    plugin = f"{software.NVIDIA}/k8s-device-plugin"
    names = ("nvidia-device-plugin", "gpu-feature-discovery", "config-manager")
    return Image(
        f"nvcr.io/nvidia/k8s-device-plugin:{module_version(plugin)}",
        {f"/usr/bin/{name}": programs[name] for name in names},
        ("nvidia-device-plugin",),
        built_from(plugin),
        env=_gpu_env("compute,utility"),
        libs=True,
    )


def _gpu_env(capabilities: str) -> dict[str, str]:
    """What NVIDIA's images set so that its runtime gives a container the driver."""
    return {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": capabilities}


def _ubuntu() -> dict[str, Source]:
    """Programs of NVIDIA's base image, Ubuntu's, that verification runs: here the host's own."""
    return {
        "/usr/bin/bash": Path("/bin/bash"),
        "/usr/bin/getent": Path("/bin/getent"),  # with /bin its libraries are looked for below /
        **{f"/usr/bin/{name}": f"{SYMLINK}busybox" for name in ("dd", "head", "od", "timeout")},
    }


def _sample(programs: Programs) -> dict[str, Source]:
    return {**shell(programs), **_ubuntu(), "/cuda-samples/vectorAdd": programs["vectorAdd"]}


def _deep_test(programs: Programs, name: str, *tests: str, for_loads: bool = False) -> Image:
    """An image of a deep verification's, which may run vectorAdd and `gpuboot load`, too."""
    return Image(
        name,
        {
            **_sample(programs),
            **{f"/usr/bin/{test}": DEEP_TESTS / test for test in tests},
            **(_load_program() if for_loads else {}),
        },
        ("/usr/bin/sh",),
        "SIMULATED: scripts that print what programs of these names print, and test nothing",
        env=_gpu_env("compute,utility"),
        libs=True,
    )


def _load_program() -> dict[str, Source]:
    """The stand-in of dcgmproftester, which is written in Python."""
    return {**python(), "/usr/bin/dcgmproftester13": SOURCES / "dcgmproftester.py"}


def _simulated(programs: Programs) -> list[Image]:
    counters = GO_MODULE / "default-counters.csv"
    exporter: dict[str, Source] = {
        "/usr/bin/sim-dcgm-exporter": programs["sim-dcgm-exporter"],
        "/usr/bin/dcgm-exporter": f"{SYMLINK}sim-dcgm-exporter",
        "/etc/dcgm-exporter/default-counters.csv": counters,
        "/etc/dcgm-exporter/dcp-metrics-included.csv": counters,
    }
    return [
        _deep_test(programs, DCGM, "nv-hostengine", "dcgmi", for_loads=True),
        _deep_test(
            programs, NCCL_TESTS, "all_reduce_perf", "mpirun", "ssh", "sshd", "sshd-session"
        ),
        Image(
            f"nvcr.io/nvidia/k8s/dcgm-exporter:{DCGM_EXPORTER}",
            exporter,
            ("/usr/bin/dcgm-exporter",),
            "SIMULATED: the lab's own exporter with upstream's metrics, options and labels",
            env=_gpu_env("compute,utility"),
            libs=True,
        ),
        *_operator(programs),
        Image(
            f"nvcr.io/nvidia/k8s/cuda-sample:{CUDA_SAMPLE}",
            _sample(programs),
            ("/cuda-samples/vectorAdd",),
            "SIMULATED: the lab's own vectorAdd, for the simulated CUDA library",
            env=_gpu_env("compute,utility"),
            workdir="/cuda-samples",
            libs=True,
        ),
    ]


def _operator(programs: Programs) -> list[Image]:
    """The GPU Operator and its MIG manager: one program."""
    operator = {**shell(programs), "/usr/bin/sim-gpu-operator": programs["sim-gpu-operator"]}
    return [
        Image(
            f"nvcr.io/nvidia/gpu-operator:{GPU_OPERATOR}",
            operator,
            ("/usr/bin/sim-gpu-operator",),
            "STAND-IN: the lab's own small controller",
            libs=True,
        ),
        Image(
            f"nvcr.io/nvidia/cloud-native/k8s-mig-manager:{MIG_MANAGER}",
            operator,
            ("/usr/bin/sim-gpu-operator", "mig"),
            "STAND-IN: divides the simulated GPUs in the steps of NVIDIA's",
            env={"NVIDIA_VISIBLE_DEVICES": "void"},
            libs=True,
        ),
    ]
