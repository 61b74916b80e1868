"""The stand-ins that are written in Go, by their own tests."""

from __future__ import annotations

import subprocess

import pytest

from lab.build.toolchain import environment, go
from tests.e2e.conftest import ROOT

pytestmark = pytest.mark.lab


def test_exporter_and_operator_stand_ins() -> None:
    result = subprocess.run(
        [str(go()), "test", "./..."],
        cwd=ROOT / "lab/gpusim/go",
        env=environment(cgo=True),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
