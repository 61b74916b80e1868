"""The stand-ins that are written in Go, by their own tests."""

from __future__ import annotations

import subprocess

import pytest

from lab.build.toolchain import environment, go
from tests.e2e.conftest import ROOT

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("folder", ["lab/gpusim/go", "lab/metrics/csr-approver"])
def test_stand_ins_by_their_own_tests(folder: str) -> None:
    result = subprocess.run(
        [str(go()), "test", "./..."],
        cwd=ROOT / folder,
        env=environment(cgo=True),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
