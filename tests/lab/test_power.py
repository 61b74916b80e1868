"""A machine whose power is cut: silent at once, as one without power is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import machines, processes


def test_it_is_silent_before_its_processes_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else its kernel closes connections and refuses new ones, and the loss is found too soon."""
    device, steps = tmp_path / "vb-gb0-cp1", []
    device.touch()

    def kill(unit: str, folder: Path) -> None:
        steps.append(f"kill {unit}")
        device.unlink()  # as the kernel does when the last process has ended

    monkeypatch.setattr(machines, "Path", lambda path: tmp_path / Path(path).name)
    monkeypatch.setattr(machines, "run", lambda argv: steps.append(" ".join(argv)))
    monkeypatch.setattr(processes, "kill", kill)
    lab = SimpleNamespace(unit=lambda name: f"gb0-{name}", machine_dir=lambda machine: tmp_path)
    machines.power_off(lab, SimpleNamespace(name="cp1"))  # type: ignore[arg-type]
    assert steps == ["ip link set vb-gb0-cp1 down", "kill gb0-cp1"]
