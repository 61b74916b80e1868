"""Compiles everything simulated: driver libraries and tools in C, the stand-ins in Go."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab.build.golang import build_arguments, run_go
from lab.build.recipe import BuildContext, Recipe

SOURCES = Path(__file__).parent
GO_MODULE = SOURCES / "go"
DRIVER_VERSIONS = ("595.112.07", "595.91.07")
STAND_INS = ("sim-dcgm-exporter", "sim-gpu-operator")
CFLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11")
LIBRARY_FLAGS = ("-fPIC", "-shared", "-fvisibility=hidden")
STATE_SOURCES = ("common/simconf.c", "common/simgpu.c", "common/simmig.c", "common/simwork.c")
C_FOLDERS = ("common", "nvml", "cuda", "smi", "vectoradd", "driver")


def recipes() -> list[Recipe]:
    """The recipes of everything simulated; outputs are named as `commands` and STAND_INS say."""
    names = commands(Path())
    return [
        Recipe(
            name="gpusim-driver",
            outputs={name: f"bin/{name}" for name in names},
            inputs=(repr(names), *(SOURCES / folder for folder in C_FOLDERS)),
            make=_make_driver,
            seconds=5,
        ),
        _stand_ins("gpusim-stand-ins", STAND_INS, cgo=True, seconds=30),  # cgo: go-nvml
        # without cgo: what it is built of is compiled already, for Kubernetes
        _stand_ins("sim-kube-state-metrics", ("sim-kube-state-metrics",), cgo=False, seconds=10),
    ]


def commands(out: Path, versions: tuple[str, ...] = DRIVER_VERSIONS) -> dict[str, list[str]]:
    """The compiler's command line for each output, by the output's name in the folder `out`."""
    command_lines = {
        "nvidia-persistenced": _gcc("driver/persistenced.c", "common/nvml_api.c", "-ldl"),
        "vectorAdd": _gcc("vectoradd/vectoradd.c", "-ldl", "-lm"),
    }
    for version in versions:
        define = f'-DSIM_DRIVER_VERSION="{version}"'
        for library, folder in (("libnvidia-ml", "nvml"), ("libcuda", "cuda")):
            command_lines[f"{library}.so.{version}"] = _gcc(
                *LIBRARY_FLAGS,
                define,
                f"-Wl,-soname,{library}.so.1",
                *_sources(folder),
                *STATE_SOURCES,
                "-lpthread",
            )
        command_lines[f"nvidia-smi.{version}"] = _gcc(
            define, *_sources("smi"), "common/nvml_api.c", *STATE_SOURCES, "-ldl", "-lpthread"
        )
        for name, licence in (("nvidia-open", "Dual MIT/GPL"), ("nvidia", "NVIDIA")):
            command_lines[f"{name}.ko.{version}"] = _gcc(
                "-c", define, f'-DSIM_LICENSE="{licence}"', "driver/kmod.c"
            )
    return {name: [*command, "-o", str(out / name)] for name, command in command_lines.items()}


def build(out: Path, versions: tuple[str, ...] = DRIVER_VERSIONS) -> dict[str, Path]:
    """Compile the C part into the folder `out` (about 3 s); return the outputs by name.

    Raises `subprocess.CalledProcessError` when the compiler finds anything to say.
    """
    out.mkdir(parents=True, exist_ok=True)
    for command in commands(out.absolute(), versions).values():
        subprocess.run(command, cwd=SOURCES, check=True)
    return {name: out / name for name in commands(out, versions)}


def _make_driver(build: BuildContext) -> None:
    out = build.out / "bin"
    out.mkdir()
    for command in commands(out).values():
        build.run(command, cwd=SOURCES)


def _stand_ins(name: str, programs: tuple[str, ...], *, cgo: bool, seconds: float) -> Recipe:
    # A module of its own: its one dependency more, DCGM's table of field names, would make every
    # other program of the lab be built again. Versions that both have are the same, and so cached.
    def make(build: BuildContext) -> None:
        shutil.copytree(GO_MODULE, build.work, dirs_exist_ok=True)
        out = build.out / "bin"
        out.mkdir()
        packages = [f"./cmd/{program}" for program in programs]
        run_go(build, *build_arguments(), "-ldflags=-s -w", f"-o={out}/", *packages, cgo=cgo)

    return Recipe(
        name=name,
        outputs={program: f"bin/{program}" for program in programs},
        inputs=(GO_MODULE, repr(build_arguments()), f"cgo={cgo}"),
        make=make,
        seconds=seconds,
    )


def _gcc(*arguments: str) -> list[str]:
    return ["gcc", *CFLAGS, *arguments]


def _sources(folder: str) -> list[str]:
    return sorted(str(path.relative_to(SOURCES)) for path in (SOURCES / folder).glob("*.c"))
