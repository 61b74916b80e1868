"""nvidia-smi that warns, fails, hangs or cannot be ended, as the facts' shell meets it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploys.parts.driver.fact import Driver, DriverState
from deploys.parts.driver.nvidia_fact import BOUNDED, SCRIPT
from gpuboot.verify.gpu_state import GpuState, parse
from tests.unit.evidence import uuid

ROWS = tuple(
    f"{index}, {uuid('gpu1', index)}, NVIDIA H100 80GB HBM3, 00000000:{bus}:00.0, 81559, Disabled, "
    "34, 71.20, P0"
    for index, bus in enumerate(("10", "1C"))
)
LIST = "\n".join(f"GPU {n}: NVIDIA H100 (UUID: {uuid('gpu1', n)})" for n in range(2))
# recorded: NVIDIA/gpu-operator#285, microsoft/pai#3756; nvidia-smi(1), "Return code 14"
WARNING = "WARNING: infoROM is corrupted at gpu 0000:1C:00.0"
LOST_GPU = (
    "Unable to determine the device handle for GPU0000:1C:00.0: GPU is lost.  Reboot the system "
    "to recover this GPU"
)
# SIGKILL ends timeout's own child alone, so what holds the pipe goes on, as a process in state D
UNKILLABLE = "setsid sleep 60 &\nsleep 60\n"
IGNORES_TERM = "trap '' TERM\nwhile :; do sleep 1; done\n"

SHELLS = [
    pytest.param(["sh"], id="sh"),
    pytest.param(
        ["busybox", "sh"],
        id="busybox",
        marks=pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed"),
    ),
]


def run(folder: Path, shell: list[str], script: str, smi: str) -> tuple[list[str], float]:
    """What a script prints with `smi` as nvidia-smi, and how long it takes, in seconds."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{smi}")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = script.replace("bounded_s + 4", "bounded_s + 1").replace("-k 2", "-k 1")
    started = time.monotonic()
    result = subprocess.run(
        [*shell, "-c", script], env=environment, capture_output=True, text=True, timeout=50
    )
    return result.stdout.splitlines(), time.monotonic() - started


def state(folder: Path, shell: list[str], smi: str) -> tuple[GpuState, float]:
    """The fact's state of a host with two GPUs on its bus; times are a tenth of the real ones."""
    for slot in ("0000:10:00.0", "0000:1c:00.0"):
        device = folder / "pci" / slot
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
    script = SCRIPT.replace("/sys/bus/pci/devices", str(folder / "pci"))
    script = script.replace("query 60 ", "query 1 ").replace("query 20 ", "query 1 ")
    lines, seconds = run(folder, shell, script, smi)
    return parse(lines), seconds


def answers(cases: Mapping[str, tuple[str, int]]) -> str:
    """A program that answers by the first of these patterns that its arguments match."""
    arms = "".join(
        f"*'{pattern}'*) cat <<'END'\n{text}\nEND\nexit {code} ;;\n"
        for pattern, (text, code) in cases.items()
    )
    return f'case "$*" in\n{arms}esac\nexit 2\n'


@pytest.mark.parametrize("shell", SHELLS)
def test_a_warning_with_an_exit_code_costs_no_gpu(tmp_path: Path, shell: list[str]) -> None:
    smi = answers({"index,uuid": ("\n".join([*ROWS, WARNING]), 14)})
    result, _ = state(tmp_path, shell, smi)
    assert [gpu.index for gpu in result.gpus] == [0, 1]
    assert (result.smi_error, dict(result.gpu_errors)) == ("", {})
    assert [gpu.warning for gpu in result.gpus] == ["", WARNING]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_lost_gpu_is_told_from_the_others(tmp_path: Path, shell: list[str]) -> None:
    smi = answers(
        {
            "-i 00000000:10:00.0": (f"{ROWS[0]}\n{WARNING.replace('1C', '10')}", 14),
            "-i 00000000:1C:00.0": (LOST_GPU, 15),
            "index,uuid": (LOST_GPU, 15),
        }
    )
    result, _ = state(tmp_path, shell, smi)
    assert [gpu.index for gpu in result.gpus] == [0]
    assert list(result.gpu_errors) == ["0000:1c:00.0"]
    assert "GPU is lost" in result.gpu_errors["0000:1c:00.0"]
    assert "GPU is lost" in result.smi_error


@pytest.mark.parametrize(
    ("shell", "hanging"),
    [(["sh"], UNKILLABLE), (["sh"], IGNORES_TERM)],
    ids=["unkillable", "ignores TERM"],
)
def test_gpus_are_asked_side_by_side_where_nvidia_smi_hangs(
    tmp_path: Path, shell: list[str], hanging: str
) -> None:
    result, seconds = state(tmp_path, shell, hanging)
    assert result.gpus == ()
    assert result.smi_error == "nvidia-smi did not answer within 60 s"
    assert "within 20 s" in result.gpu_errors["0000:1c:00.0"]
    # 1 s and 1 s of grace for all of them, then the same for each at once
    assert seconds < 6


def test_one_hanging_gpu_does_not_hide_the_other(tmp_path: Path) -> None:
    smi = answers({"-i 00000000:10:00.0": (ROWS[0], 0)}).replace("exit 2\n", UNKILLABLE)
    result, _ = state(tmp_path, ["sh"], smi)
    assert [gpu.index for gpu in result.gpus] == [0]
    assert list(result.gpu_errors) == ["0000:1c:00.0"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("smi", "gpus", "message"),
    [
        (answers({"-L": (f"{LIST}\n{WARNING}", 14)}), 2, WARNING),
        (answers({"-L": (LIST, 0)}), 2, ""),
        (answers({"-L": (f"{LIST.splitlines()[0]}\n{LOST_GPU}", 15)}), 1, LOST_GPU),
        (UNKILLABLE, 0, "nvidia-smi -L did not answer within 1 s"),
    ],
    ids=["warning", "well", "lost", "hangs"],
)
def test_the_driver_shows_its_gpus(
    tmp_path: Path, shell: list[str], smi: str, gpus: int, message: str
) -> None:
    fact = Driver()
    lines, _ = run(tmp_path, shell, fact.command(timeout_s=1), smi)
    result: DriverState = fact.process(lines)
    assert (len(result.gpus), result.smi) == (gpus, message)


@pytest.mark.parametrize("shell", SHELLS)
def test_output_and_exit_code_are_kept(tmp_path: Path, shell: list[str]) -> None:
    lines, _ = run(
        tmp_path, shell, f"{BOUNDED}bounded 5 nvidia-smi", "echo a\necho b >&2\nexit 7\n"
    )
    assert [line for line in lines if line] == ["a", "b", "exit=7"]
