"""Which exporters and host engines of DCGM are refused together, by both forms of tags."""

from __future__ import annotations

import pytest

from gpuboot.config import exporter_versions


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("4.6.1-4.8.4-distroless", ""),
        ("4.6.1-4.8.4-distroless@sha256:" + "0" * 64, ""),
        ("4.9.0-distroless", ""),
        ("4.9.0", ""),
        ("latest", ""),
        ("4.6.0-4.8.2-ubuntu22.04", "is exporter 4.8.2, which lacks DCGM_EXP_XID_ERRORS_TOTAL"),
        ("4.8.2", "is exporter 4.8.2, which lacks DCGM_EXP_XID_ERRORS_TOTAL"),
    ],
)
def test_an_exporter_without_the_counter_of_xids_is_refused(image: str, message: str) -> None:
    causes = [problem.cause for problem in exporter_versions.old(image)]
    assert len(causes) == bool(message)
    assert all(message in cause for cause in causes)


@pytest.mark.parametrize(
    ("image", "engine", "message"),
    [
        ("4.6.1-4.8.4-distroless", "4.6.1", ""),
        ("4.6.1-4.8.4-distroless", "4.7.0", "newer than the DCGM 4.6.1 in the exporter"),
        ("4.9.0-distroless", "4.7.1", ""),
        ("4.9.0-distroless", "4.6.1", "reads a host engine of DCGM 4.7.0 or newer alone"),
        ("4.9.0", "3.3.9", "gpuboot installs DCGM 4 alone"),
    ],
)
def test_an_engine_that_the_exporter_cannot_read_is_refused(
    image: str, engine: str, message: str
) -> None:
    causes = [problem.cause for problem in exporter_versions.engine_problems(image, engine)]
    assert len(causes) == bool(message)
    assert all(message in cause for cause in causes)
