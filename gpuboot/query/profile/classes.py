"""The class of a GPU's work: the first rule that applies to its means of five minutes.

Counters tell what a GPU did, not why: a class says where to look first. The rules and their order
are those of the dashboard "GPU profile"; two of them need what its queries cannot have, the
model's NVLink and the host's view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpuboot.config.settings.profile import Thresholds
from gpuboot.query.profile.counters import Means

Name = Literal[
    "insufficient_data",
    "thermally_throttled",
    "idle",
    "idle_held",
    "memory_bound",
    "compute_bound",
    "communication_bound",
    "pcie_bound",
    "input_bound",
    "latency_bound",
    "balanced",
    "busy",
]
Confidence = Literal["high", "low"]


@dataclass(frozen=True)
class Evidence:
    """A comparison that a class rests on.

    + what: the counter or what is made of it; value: its mean, as a share of 1
    + limit: the threshold, below or above which it is; source: whose number that is
    """

    what: str
    value: float
    above: bool
    limit: float
    source: str

    def __str__(self) -> str:
        return f"{self.what} {self.value:.2f} {'>=' if self.above else '<'} {self.limit:g}"


@dataclass(frozen=True)
class HostView:
    """What the host tells of a GPU that waits; None: nobody asked, or nobody knows.

    + iowait: share of the node's CPU time that waits for disks
    + cpu_throttled: share of CPU periods in which the pod's containers hit their CPU limit
    """

    iowait: float | None = None
    cpu_throttled: float | None = None


@dataclass(frozen=True)
class Context:
    """What is known of a device besides its counters.

    + has_holder: a pod's name stands on its series
    + nvlink_max: what the model's NVLinks carry in one direction, bytes per second; None: not known
    """

    has_holder: bool = False
    nvlink_max: float | None = None
    host: HostView = field(default_factory=HostView)


@dataclass(frozen=True)
class Class:
    """The class of five minutes of work.

    + notes: what else is true of it, such as `power_capped`
    """

    name: Name
    evidence: tuple[Evidence, ...] = ()
    confidence: Confidence = "high"
    notes: tuple[str, ...] = ()


_RuleResult = Sequence[Evidence] | None  # None: the rule does not apply
_Rule = Callable[[Means, Context, Thresholds], _RuleResult]


def classify(means: Means, context: Context, limits: Thresholds) -> Class:
    """The first class whose rule applies."""
    if means.samples < limits["samples"]:
        shortfall = _below("share of the expected samples", means.samples, "samples", limits)
        return Class("insufficient_data", (shortfall,))
    if means.get("engine") is None:
        return _by_utilization(means, context, limits)
    notes = _notes(means, limits)
    for name, rule in _RULES:
        if (evidence := rule(means, context, limits)) is not None:
            exact: Name = (
                "idle_held" if name == "idle" and _is_held(means, context, limits) else name
            )
            suspected = name == "input_bound" and not _blames_host(context, limits)
            return Class(exact, tuple(evidence), "low" if suspected else "high", notes)
    if means.get("sm") is None:
        return Class("busy", (), "low", (*notes, "no profiling fields beside the engine's"))
    return Class("balanced", tuple(_balanced(means, limits)), "high", notes)


def _by_utilization(means: Means, context: Context, limits: Thresholds) -> Class:
    """The class without profiling fields: GPU_UTIL tells work from none, and nothing else."""
    notes = (
        "no profiling fields: GeForce, vGPU, not collected, taken by a profiler, or at 0 while "
        "kernels run (see the alert GPUMetricsFrozen)",
    )
    util = means.get("util")
    if util is None:
        return Class("insufficient_data", (), "low", notes)
    if util / 100 < limits["idle_engine"]:
        low_util = _below("GPU_UTIL", util / 100, "idle_engine", limits)
        name: Name = "idle_held" if _is_held(means, context, limits) else "idle"
        return Class(name, (low_util,), "low", notes)
    return Class("busy", (_above("GPU_UTIL", util / 100, "idle_engine", limits),), "low", notes)


def _notes(means: Means, limits: Thresholds) -> tuple[str, ...]:
    capped = means.get("power_cap")
    if capped is None or capped < limits["power_cap"]:
        return ()
    return (f"power_capped: held down by its power limit in {capped:.0%} of the time",)


def _is_held(means: Means, context: Context, limits: Thresholds) -> bool:
    used = means.memory_ratio
    return context.has_holder or (used is not None and used > limits["held_memory"])


def _throttled(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    engine = means.values["engine"]
    for name in ("hw_thermal", "sw_thermal"):
        share = means.get(name)
        if share is not None and share >= limits[name] and engine >= limits["at_work"]:
            return [
                _above(f"time slowed down ({name})", share, name, limits),
                _above("engine active", engine, "at_work", limits),
            ]
    brake = means.get("power_brake")
    if brake is not None and brake >= limits["power_brake"]:
        return [_above("time slowed down (power_brake)", brake, "power_brake", limits)]
    return None


def _idle(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    engine, dram = means.values["engine"], means.get("dram")
    if engine >= limits["idle_engine"] or (dram or 0.0) >= limits["idle_dram"]:
        return None
    evidence = [_below("engine active", engine, "idle_engine", limits)]
    if dram is not None:
        evidence.append(_below("DRAM active", dram, "idle_dram", limits))
    return evidence


def _memory_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    sm, dram = means.get("sm"), means.get("dram")
    name, pipe = means.pipe
    if sm is None or dram is None or sm < limits["sm_poor"] or dram < limits.busy_dram:
        return None
    if dram / limits["dram_ceiling"] < pipe:
        return None
    return [
        _above("SM active", sm, "sm_poor", limits),
        _dram(dram, above=True, limits=limits),
        *_more_than_pipe(dram, name, pipe, limits),
    ]


def _compute_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    sm, dram = means.get("sm"), means.get("dram")
    name, pipe = means.pipe
    if sm is None or dram is None or sm < limits["sm_needed"] or pipe < limits["pipe_busy"]:
        return None
    if dram >= limits.busy_dram:
        return None
    return [
        _above("SM active", sm, "sm_needed", limits),
        _above(f"{name} pipe active", pipe, "pipe_busy", limits),
        _dram(dram, above=False, limits=limits),
    ]


def _communication_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    """The rule: NVLink is busy, or without NVLink what is sent over PCIe, and pipes are idle."""
    name, pipe = means.pipe
    if not name or pipe >= limits["pipe_idle"]:
        return None
    sent_rate, got = means.get("nvlink_tx"), means.get("nvlink_rx")
    if sent_rate is not None or got is not None:
        link, used, ceiling = "NVLink", max(sent_rate or 0.0, got or 0.0), context.nvlink_max
    else:
        link, used, ceiling = "PCIe out", means.get("pcie_tx") or 0.0, means.pcie_max
    if not ceiling or used / ceiling < limits["link_busy"]:
        return None
    return [
        _above(f"{link}, of what it carries,", used / ceiling, "link_busy", limits),
        _below(f"{name} pipe active", pipe, "pipe_idle", limits),
    ]


def _pcie_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    got, ceiling = means.get("pcie_rx"), means.pcie_max
    if got is None or not ceiling or got / ceiling < limits["link_busy"]:
        return None
    return [_above("PCIe in, of what it carries,", got / ceiling, "link_busy", limits)]


def _input_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    engine, uneven = means.values["engine"], means.engine_variation
    if uneven is None or engine >= limits["engine_waits"] or uneven <= limits["engine_uneven"]:
        return None
    return [
        _below("engine active", engine, "engine_waits", limits),
        _above("its coefficient of variation", uneven, "engine_uneven", limits),
        *_blames_host(context, limits),
    ]


def _latency_bound(means: Means, context: Context, limits: Thresholds) -> _RuleResult:
    engine, sm = means.values["engine"], means.get("sm")
    if sm is None or engine < limits["engine_busy"] or sm >= limits["sm_poor"]:
        return None
    return [
        _above("engine active", engine, "engine_busy", limits),
        _below("SM active", sm, "sm_poor", limits),
    ]


_RULES: tuple[tuple[Name, _Rule], ...] = (
    ("thermally_throttled", _throttled),
    ("idle", _idle),
    ("memory_bound", _memory_bound),
    ("compute_bound", _compute_bound),
    ("communication_bound", _communication_bound),
    ("pcie_bound", _pcie_bound),
    ("input_bound", _input_bound),
    ("latency_bound", _latency_bound),
)


def _balanced(means: Means, limits: Thresholds) -> list[Evidence]:
    """The evidence of a balanced GPU: the values that keep it from any other class."""
    name, pipe = means.pipe
    sm, dram = means.get("sm"), means.get("dram")
    evidence = []
    if sm is not None:
        compare = _above if sm >= limits["sm_needed"] else _below
        evidence.append(compare("SM active", sm, "sm_needed", limits))
    if dram is not None:
        evidence.append(_dram(dram, dram >= limits.busy_dram, limits))
    if name:
        compare = _above if pipe >= limits["pipe_busy"] else _below
        evidence.append(compare(f"{name} pipe active", pipe, "pipe_busy", limits))
    return evidence


def _blames_host(context: Context, limits: Thresholds) -> list[Evidence]:
    """What of the host's view explains a GPU that waits."""
    measures = (
        ("the host's CPUs wait for disks (iowait)", "iowait", context.host.iowait),
        ("CPU periods at the pod's limit", "cpu_throttled", context.host.cpu_throttled),
    )
    return [
        _above(measure, value, name, limits)
        for measure, name, value in measures
        if value is not None and value >= limits[name]
    ]


def _dram(dram: float, above: bool, limits: Thresholds) -> Evidence:
    share = f"{limits['dram_busy']:.0%} of the ceiling of {limits['dram_ceiling']:g}"
    source = f"{limits.source('dram_busy')}: {share} ({limits.source('dram_ceiling')})"
    return Evidence("DRAM active", dram, above, limits.busy_dram, source)


def _more_than_pipe(dram: float, name: str, pipe: float, limits: Thresholds) -> list[Evidence]:
    if not name:
        return []
    measure = "DRAM active, of its ceiling,"
    return [Evidence(measure, dram / limits["dram_ceiling"], True, round(pipe, 3), f"{name} pipe")]


def _above(measure: str, value: float, name: str, limits: Thresholds) -> Evidence:
    return Evidence(measure, value, True, limits[name], limits.source(name))


def _below(measure: str, value: float, name: str, limits: Thresholds) -> Evidence:
    return Evidence(measure, value, False, limits[name], limits.source(name))
