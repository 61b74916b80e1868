"""How near a GPU's work comes to what its model can do: arithmetic, memory, and their quotient."""

from __future__ import annotations

from dataclasses import dataclass

from gpuboot.config.tables import read_table
from gpuboot.query.profile.counters import Means


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What a model reaches at its boost clock, by NVIDIA's data sheet.

    + model: how nvidia-smi's name of it begins
    + tensor: 10^12 floating-point operations per second of dense FP16 or BF16 on tensor cores
    + fp32, fp64: likewise, of the pipes without tensor cores
    + memory: 10^9 bytes per second of device memory
    + nvlink: likewise of all NVLinks in one direction; None: it has none, or as many as its bridge
    + source: the data sheet
    """

    model: str
    tensor: float
    fp32: float
    fp64: float
    memory: float
    nvlink: float | None = None
    source: str


def _read() -> tuple[Peak, ...]:
    rows = read_table("query/profile/peaks.toml")["peaks"]
    return tuple(Peak(source=f"NVIDIA {row.pop('sheet')} data sheet", **row) for row in rows)


TABLE = _read()
# AWS' A10G is another chip than the A10, of which NVIDIA has no data sheet
_OTHER_MODELS = ("NVIDIA A10G", "NVIDIA L40")


@dataclass(frozen=True)
class Position:
    """Where work stands on the roofline of its GPU. Estimates, and upper bounds: see `position`.

    + compute: 10^12 operations per second; memory: 10^9 bytes per second
    + intensity: operations for each byte; None: no bytes moved
    + ridge: intensity from which arithmetic limits and no more memory
    + peak: what it is compared with
    """

    compute: float
    memory: float
    intensity: float | None
    ridge: float
    peak: Peak

    def __str__(self) -> str:
        per_byte = "no" if self.intensity is None else f"{self.intensity:.0f}"
        return (
            f"up to {self.compute:.0f} of {self.peak.tensor:g} TFLOP/s, {self.memory:.0f} of "
            f"{self.peak.memory:g} GB/s; {per_byte} operations a byte, memory limits below "
            f"{self.ridge:.0f} ({self.peak.source}, dense FP16)"
        )


def peak(model: str) -> Peak | None:
    """That of a model, by nvidia-smi's name; None: nobody has published one, or not here."""
    entry = next((item for item in TABLE if model.startswith(item.model)), None)
    variant = next((name for name in _OTHER_MODELS if model.startswith(name)), "")
    return None if entry is None or len(variant) > len(entry.model) else entry


def position(means: Means, model: str) -> Position | None:
    """Where work stands; None without the fields, or for a model that is not in the table.

    A pipe's activity is the share of cycles with an instruction, whatever its type: it is taken
    for dense FP16 on tensor cores, and as many operations as there can be. Cycles are those of the
    clock that ran, so peaks are scaled to it where the clocks are known.
    """
    model_peak, dram = peak(model), means.get("dram")
    if model_peak is None or dram is None or means.get("tensor") is None:
        return None
    clock, max_clock = means.get("sm_clock"), means.get("sm_clock_max")
    scale = min(1.0, clock / max_clock) if clock and max_clock else 1.0
    # FP16 without tensor cores runs at twice FP32's rate, or at its own: the lesser is taken
    pipes = (("tensor", model_peak.tensor), ("fp32", model_peak.fp32), ("fp64", model_peak.fp64),
             ("fp16", model_peak.fp32))  # fmt: skip
    compute = scale * sum((means.get(name) or 0.0) * rate for name, rate in pipes)
    memory = dram * model_peak.memory
    intensity = compute * 1000 / memory if memory else None
    return Position(
        compute, memory, intensity, model_peak.tensor * 1000 / model_peak.memory, model_peak
    )
