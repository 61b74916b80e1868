"""The script that resets GPUs of a node, with programs that note what they are asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploys.parts.repair.node_repair import RESET

PROGRAM = '#!/bin/sh\necho "$(basename $0) $*" >>"$NOTES"\n'
CRICTL = """
case $* in
  *"pods -q"*) echo plugin; echo exporter ;;
  *"ps -q --pod plugin"*) echo c1; echo c2 ;;
  *"ps -q --pod exporter"*) echo c3 ;;
esac
"""
SYSTEMCTL = "case $* in *nvsm*) exit 1 ;; esac\n"
SMI = """
case $* in
  *GPU-lost*) echo "GPU is lost"; echo "All done."; exit 15 ;;
  *GPU-warns*) exit 14 ;;
esac
"""
STOPPED = ["systemctl stop kubelet nvidia-persistenced nvidia-dcgm"]
STARTED = "systemctl start nvidia-persistenced nvidia-dcgm kubelet"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with programs that stand in for those of a node."""
    for name, body in (
        ("systemctl", SYSTEMCTL),
        ("crictl", CRICTL),
        ("nvidia-smi", SMI),
        ("sleep", ""),
        ("find", ""),
    ):
        path = tmp_path / name
        path.write_text(PROGRAM + body)
        path.chmod(0o755)
    return tmp_path


def reset(programs: Path, gpus: str) -> tuple[list[str], list[str]]:
    """The answer, and what was done."""
    notes = programs / "notes"
    result = subprocess.run(
        ["sh", "-c", f"gpus='{gpus}'; folder={programs}; socket=unix:///run/c.sock\n{RESET}"],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "NOTES": str(notes)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    looks = ("systemctl is-", "sleep", "find")
    calls = [line for line in notes.read_text().splitlines() if not line.startswith(looks)]
    return result.stdout.splitlines()[-1].split("\t"), calls


def test_what_watches_gpus_ends_before_and_starts_after(programs: Path) -> None:
    answer, calls = reset(programs, "GPU-a GPU-b")
    assert answer == ["done", "GPU-a GPU-b"]
    stops = [
        line.partition("stop ")[2] for line in calls if line.startswith("crictl") and "stop" in line
    ]
    assert stops == ["--timeout 10 c1 c2", "--timeout 10 c3"]
    resets = ["nvidia-smi --gpu-reset -i GPU-a", "nvidia-smi --gpu-reset -i GPU-b"]
    own_calls = [line for line in calls if not line.startswith("crictl")]
    assert own_calls == [*STOPPED, *resets, STARTED, STARTED]
    assert calls.index(resets[0]) > max(at for at, line in enumerate(calls) if "stop --" in line)


def test_a_gpu_that_is_not_reset_is_named_and_all_starts_again(programs: Path) -> None:
    answer, calls = reset(programs, "GPU-lost GPU-b")
    assert answer == ["failed", "GPU-lost: GPU is lost All done."]
    assert "nvidia-smi --gpu-reset -i GPU-b" not in calls
    assert calls[-1] == STARTED


def test_a_warning_of_nvidia_smi_is_no_failure(programs: Path) -> None:
    answer, _ = reset(programs, "GPU-warns GPU-b")
    assert answer == ["done", "GPU-warns GPU-b"]


def test_a_program_that_is_not_ours_keeps_its_gpu(programs: Path) -> None:
    find = programs / "find"
    find.write_text(f"#!/bin/sh\necho /proc/{os.getpid()}/fd/7\n")
    answer, calls = reset(programs, "GPU-a")
    name = Path("/proc/self/comm").read_text().strip()
    assert answer == ["busy", f"GPUs are used by {name} (process {os.getpid()})"]
    assert not any("gpu-reset" in line for line in calls)
    assert calls[-1] == STARTED
