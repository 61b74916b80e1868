"""How near a GPU's work comes to what its model can do: arithmetic, memory, and their quotient."""

from __future__ import annotations

from dataclasses import dataclass

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


_SHEET = "NVIDIA {} data sheet"
TABLE: tuple[Peak, ...] = (
    Peak(model="NVIDIA B200", tensor=2250, fp32=75, fp64=37, memory=7700, nvlink=900,
         source=_SHEET.format("HGX B200")),
    Peak(model="NVIDIA H200 NVL", tensor=835, fp32=60, fp64=30, memory=4800,
         source=_SHEET.format("H200")),
    Peak(model="NVIDIA H200", tensor=989, fp32=67, fp64=34, memory=4800, nvlink=450,
         source=_SHEET.format("H200")),
    Peak(model="NVIDIA H100 80GB HBM3", tensor=989, fp32=67, fp64=34, memory=3350, nvlink=450,
         source=_SHEET.format("H100")),
    Peak(model="NVIDIA H100 NVL", tensor=835, fp32=60, fp64=30, memory=3900,
         source=_SHEET.format("H100")),
    Peak(model="NVIDIA H100 PCIe", tensor=756, fp32=51, fp64=26, memory=2000,
         source=_SHEET.format("H100")),
    Peak(model="NVIDIA A100-SXM4-80GB", tensor=312, fp32=19.5, fp64=9.7, memory=2039, nvlink=300,
         source=_SHEET.format("A100")),
    Peak(model="NVIDIA A100-SXM4-40GB", tensor=312, fp32=19.5, fp64=9.7, memory=1555, nvlink=300,
         source=_SHEET.format("A100")),
    Peak(model="NVIDIA A100 80GB PCIe", tensor=312, fp32=19.5, fp64=9.7, memory=1935,
         source=_SHEET.format("A100")),
    Peak(model="NVIDIA L40S", tensor=362, fp32=91.6, fp64=1.4, memory=864,
         source=_SHEET.format("L40S")),
    Peak(model="NVIDIA L4", tensor=121, fp32=30.3, fp64=0.47, memory=300,
         source=_SHEET.format("L4")),
    Peak(model="NVIDIA A10", tensor=125, fp32=31.2, fp64=0.98, memory=600,
         source=_SHEET.format("A10")),
    Peak(model="Tesla V100-SXM2", tensor=125, fp32=15.7, fp64=7.8, memory=900, nvlink=150,
         source=_SHEET.format("V100")),
    Peak(model="Tesla T4", tensor=65, fp32=8.1, fp64=0.25, memory=320,
         source=_SHEET.format("T4")),
)  # fmt: skip
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
