"""Kill points are found in a run's record, so that a new phase or step is killed as well."""

from __future__ import annotations

from typing import Any

from tests.e2e.kill_points import KillPoint, found_in


def operation(phase: str, name: str, seconds: float, *hosts: str) -> dict[str, Any]:
    """One as run.json has it."""
    return {
        "phase": phase,
        "name": name,
        "seconds": seconds,
        "hosts": {host: {"begun": 1.0, "ended": 2.0} for host in hosts},
    }


def test_every_boundary_and_the_midst_of_every_long_step() -> None:
    run = {
        "operations": [
            operation("Base", "Install", 8, "cp1", "gpu1"),
            operation("Base", "Write", 0.2, "cp1"),
            operation("Drivers", "Load", 1, "gpu1"),
            operation("Drivers", "Check", 3, "gpu1"),
        ]
    }
    assert found_in(run, long_s=3) == [
        KillPoint("Base | Install", 0, ("cp1", "gpu1")),
        KillPoint("Base | Install", 4, ("cp1", "gpu1")),
        KillPoint("Drivers | Load", 0, ("gpu1",)),
        KillPoint("Drivers | Check", 1.5, ("gpu1",)),
    ]


def test_a_phase_that_comes_again_has_its_boundary_again() -> None:
    operations = [operation(phase, "x", 0, "cp1") for phase in ("Helm", "Storage", "Helm")]
    assert len(found_in({"operations": operations})) == 3
