"""The stand-ins of a deep verification: what they print can be read, and follows faults."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpuboot.verify.deep import dcgm_diag, nccl_tests, nvbandwidth
from tests.documents import ROOT

STAND_INS = ROOT / "lab/gpusim/deep"
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *ecc*) printf '0\\n%s\\n' "$ERRORS" ;;
  *driver_version*) printf '595.91.07\\n595.91.07\\n' ;;
  *width*) printf '16\\n%s\\n' "$WIDTH" ;;
  *index*) printf '0\\n1\\n' ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with an nvidia-smi that knows two GPUs."""
    path = tmp_path / "nvidia-smi"
    path.write_text(NVIDIA_SMI)
    path.chmod(0o755)
    return tmp_path


def said(programs: Path, *command: str, **values: str) -> str:
    name, *rest = command
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GPUSIM_DEEP_S": "0",
        "ERRORS": "0",
        "WIDTH": "16",
        **values,
    }
    return subprocess.run(
        ["sh", str(STAND_INS / name), *rest],
        env=environment, capture_output=True, text=True, check=True, timeout=30,
    ).stdout  # fmt: skip


def test_dcgmi_fails_the_memory_of_a_gpu_with_errors(programs: Path) -> None:
    found = dcgm_diag.parse(said(programs, "dcgmi", "diag", "-r", "3", "-j", ERRORS="2"))
    failed = [(item.test, item.gpu) for item in found.results if item.status == "Fail"]
    assert failed == [("memory", 1)]
    assert "SIMULATED" in found.version
    assert found.driver == "595.91.07"
    few = dcgm_diag.parse(said(programs, "dcgmi", "diag", "-r", "2", "-j"))
    assert len(few.of(0)) < len(found.of(0))


def test_nvbandwidth_is_slow_on_a_narrow_link(programs: Path) -> None:
    found = nvbandwidth.parse(said(programs, "nvbandwidth", "-j", WIDTH="8"))
    assert set(found.cases) == set(nvbandwidth.CASES)
    first, second = (found.cases[nvbandwidth.HOST_TO_GPU].of(gpu)[0] for gpu in (0, 1))
    assert second < first / 2 + 1
    assert "SIMULATED" in found.version


def test_all_reduce_is_wrong_without_a_sound_computation(programs: Path) -> None:
    """There is no vectorAdd here, so no GPU computes right."""
    found = nccl_tests.parse(said(programs, "all_reduce_perf", "-b", "8G", "-e", "8G", "-g", "2"))
    assert (len(found.ranks), found.wrong) == (2, 64)
