"""What nvidia-smi says of GPUs while they work: clocks, power, PCIe link.

A link to a GPU that does nothing goes down to its first generation to save power, so width and
generation are only judged under load. Their maxima are those of card and slot together
(nvmlDeviceGetMaxPcieLinkWidth). A limit of power may be a setting of the site, and the clock that a
model holds depends on the work, so both are compared with GPUs of the same model beside it. A
reason for low clocks is a bit of `nvmlClocksEventReasons` (nvml.h).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuboot.hosts.nvidia_smi import ACCEPT_WARNING

FIELDS = (
    "uuid",
    "utilization.gpu",
    "clocks.sm",
    "clocks.max.sm",
    "power.draw",
    "power.limit",
    "power.default_limit",
    "temperature.gpu",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "clocks_event_reasons.active",
)
COMMAND = (
    f"timeout -k 5 20 nvidia-smi --query-gpu={','.join(FIELDS)} --format=csv,noheader,nounits"
    + ACCEPT_WARNING
)
_BUSY = 50  # %
_SLOW = 0.8  # of the best clock of the others: less than heat makes of a difference
_SOME = 0.1  # of the samples: one alone may be a moment between two tests
SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "external power brake",
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The state of a GPU at one moment; None: it has no such value.

    + utilization: %
    + sm_clock, sm_clock_max: MHz
    + power, power_limit, power_default: W; the last is the model's own limit
    + temperature: °C
    + reasons: for low clocks, a bit each
    """

    uuid: str
    utilization: float | None = None
    sm_clock: float | None = None
    sm_clock_max: float | None = None
    power: float | None = None
    power_limit: float | None = None
    power_default: float | None = None
    temperature: float | None = None
    gen: float | None = None
    gen_max: float | None = None
    width: float | None = None
    width_max: float | None = None
    reasons: int = 0

    @property
    def busy(self) -> bool:
        return self.utilization is not None and self.utilization >= _BUSY


def parse(text: str) -> list[Sample]:
    """The answers of `COMMAND`, one after the other; lines that are none are passed over."""
    rows = ([cell.strip() for cell in line.split(",")] for line in text.splitlines())
    return [_sample(row) for row in rows if len(row) == len(FIELDS) and row[0].startswith("GPU-")]


def _sample(row: Sequence[str]) -> Sample:
    values = [_number(cell) for cell in row[1:-1]]
    names = ("utilization", "sm_clock", "sm_clock_max", "power", "power_limit", "power_default",
             "temperature", "gen", "gen_max", "width", "width_max")  # fmt: skip
    reasons = int(row[-1], 16) if row[-1].startswith("0x") else 0
    return Sample(uuid=row[0], reasons=reasons, **dict(zip(names, values, strict=True)))


def _number(cell: str) -> float | None:
    """A cell as a number; None for `[N/A]` and the like."""
    try:
        return float(cell)
    except ValueError:
        return None


def narrowed(samples: Iterable[Sample]) -> str:
    """What of the PCIe link is less than it could be, however hard it worked; "" for nothing."""
    busy = [item for item in samples if item.busy]
    pairs = {
        "width": [(sample.width, sample.width_max) for sample in busy],
        "generation": [(sample.gen, sample.gen_max) for sample in busy],
    }
    return ", ".join(
        f"{name} {max(known_pairs)[0]:g} of {max(known_pairs)[1]:g}"
        for name, values in pairs.items()
        if (
            known_pairs := [
                (now, limit) for now, limit in values if now is not None and limit is not None
            ]
        )
        and max(now for now, _ in known_pairs) < max(limit for _, limit in known_pairs)
    )


def slowed(samples: Iterable[Sample]) -> list[str]:
    """The slowdowns that held for long, with their share of the time under load."""
    return list(_slowed([item for item in samples if item.busy]))


def _slowed(busy: Sequence[Sample]) -> Iterator[str]:
    for bit, name in SLOWDOWNS.items():
        share = sum(bool(item.reasons & bit) for item in busy) / (len(busy) or 1)
        if share > _SOME:
            yield f"{name} in {share:.0%} of the time"


def apart(samples: Iterable[Sample], peers: Iterable[Sample]) -> str:
    """How a GPU falls behind others of its model under the same tests; "" where it does not."""
    gpu_samples, busy_peers = (
        [item for item in samples if item.busy],
        [item for item in peers if item.busy],
    )
    clock, best = (
        _maximum(sample.sm_clock for sample in gpu_samples),
        _maximum(sample.sm_clock for sample in busy_peers),
    )
    limit, highest = (
        _maximum(sample.power_limit for sample in gpu_samples),
        _maximum(sample.power_limit for sample in busy_peers),
    )
    parts = []
    if clock is not None and best is not None and clock < _SLOW * best:
        parts.append(f"SM clock at most {clock:g} MHz, and {best:g} MHz of others of its model")
    if limit is not None and highest is not None and limit < highest:
        parts.append(f"power limit {limit:g} W, and {highest:g} W of others of its model")
    return ", ".join(parts)


def _maximum(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def summary(samples: Iterable[Sample]) -> str:
    """Clocks, power, heat and link under load, in words."""
    busy = [item for item in samples if item.busy]
    parts = [
        _range(
            [sample.sm_clock for sample in busy],
            [sample.sm_clock_max for sample in busy],
            "SM clock",
            "MHz",
        ),
        _range(
            [sample.power for sample in busy], [sample.power_limit for sample in busy], "power", "W"
        ),
        _lowered(busy),
        _range([sample.temperature for sample in busy], [], "temperature", "°C"),
        _range([sample.gen for sample in busy], [], "PCIe generation", ""),
        _range([sample.width for sample in busy], [], "width", ""),
    ]
    return ", ".join(filter(None, parts))


def _lowered(busy: Iterable[Sample]) -> str:
    """A sentence on a power limit below the model's own; "" where it is not."""
    lowered = [
        sample.power_default
        for sample in busy
        if sample.power_limit and sample.power_default and sample.power_limit < sample.power_default
    ]
    return f"limited by a setting from {max(lowered):g} W" if lowered else ""


def _range(
    values: Iterable[float | None], limits: Iterable[float | None], name: str, unit: str
) -> str:
    known_values = [value for value in values if value is not None]
    limit = _maximum(limits)
    if not known_values:
        return ""
    low, high = min(known_values), max(known_values)
    span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    of = f" of {limit:g}" if limit is not None else ""
    return f"{name} {span}{of} {unit}".rstrip()
