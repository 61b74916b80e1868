"""The simulated driver, built once for all tests of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.gpusim import builds
from tests.lab.simulated_driver import VERSION, SimulatedMachine


@pytest.fixture(scope="session")
def bins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gpusim")
    builds.build(out, (VERSION,))
    return out


@pytest.fixture
def machine(bins: Path, tmp_path: Path) -> SimulatedMachine:
    lib = tmp_path / "lib"
    lib.mkdir()
    for library in ("libnvidia-ml", "libcuda"):
        (lib / f"{library}.so.1").symlink_to(bins / f"{library}.so.{VERSION}")
    return SimulatedMachine(bins, tmp_path)
