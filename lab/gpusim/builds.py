"""Compiles the simulated driver: libraries and tools per driver version, and vectorAdd."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent
DRIVER_VERSIONS = ("595.91.07", "595.71.05")
CFLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11")
LIBRARY_FLAGS = ("-fPIC", "-shared", "-fvisibility=hidden")


def commands(out: Path, versions: tuple[str, ...] = DRIVER_VERSIONS) -> dict[str, list[str]]:
    """The compiler's command line for each output, by the output's name in the folder `out`."""
    made = {
        "nvidia-persistenced": _gcc("driver/persistenced.c", "common/nvml_api.c", "-ldl"),
        "vectorAdd": _gcc("vectoradd/vectoradd.c", "-ldl", "-lm"),
    }
    for version in versions:
        define = f'-DSIM_DRIVER_VERSION="{version}"'
        for library, folder in (("libnvidia-ml", "nvml"), ("libcuda", "cuda")):
            made[f"{library}.so.{version}"] = _gcc(
                *LIBRARY_FLAGS,
                define,
                f"-Wl,-soname,{library}.so.1",
                *_sources(folder),
                "common/simconf.c",
                "-lpthread",
            )
        made[f"nvidia-smi.{version}"] = _gcc(
            define, *_sources("smi"), "common/nvml_api.c", "common/simconf.c", "-ldl", "-lpthread"
        )
        for name, licence in (("nvidia-open", "Dual MIT/GPL"), ("nvidia", "NVIDIA")):
            made[f"{name}.ko.{version}"] = _gcc(
                "-c", define, f'-DSIM_LICENSE="{licence}"', "driver/kmod.c"
            )
    return {name: [*command, "-o", str(out / name)] for name, command in made.items()}


def build(out: Path, versions: tuple[str, ...] = DRIVER_VERSIONS) -> dict[str, Path]:
    """Compile everything into the folder `out` (about 3 s); return the outputs by name.

    Raises `subprocess.CalledProcessError` when the compiler finds anything to say.
    """
    out.mkdir(parents=True, exist_ok=True)
    for command in commands(out.absolute(), versions).values():
        subprocess.run(command, cwd=SOURCES, check=True)
    return {name: out / name for name in commands(out, versions)}


def _gcc(*arguments: str) -> list[str]:
    return ["gcc", *CFLAGS, *arguments]


def _sources(folder: str) -> list[str]:
    return sorted(str(path.relative_to(SOURCES)) for path in (SOURCES / folder).glob("*.c"))
