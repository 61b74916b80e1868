"""Metrics of GPUs that move when a GPU works."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.verify.prometheus import POWER, TEMPERATURE, USED, Sample

# of a GPU's work, as shares of time; the first that a GPU has is taken
UTILIZATION: Mapping[str, float] = {
    "DCGM_FI_PROF_SM_ACTIVE": 1.0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1.0,
    "DCGM_FI_DEV_GPU_UTIL": 0.01,
}
_LINKS = ("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES")
SERIES = (*UTILIZATION, USED, TEMPERATURE, POWER, *_LINKS)
QUERY = f'max by (UUID, __name__) ({{__name__=~"{"|".join(SERIES)}",UUID!=""}})'
RISE = 0.2  # of a share of time: the load keeps the whole GPU busy

Values = Mapping[str, Mapping[str, float]]  # UUID -> metric -> value


def values(samples: Iterable[Sample]) -> Values:
    """The samples by GPU."""
    by_gpu: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in samples:
        by_gpu[sample.labels["UUID"]][sample.labels["__name__"]] = sample.value
    return dict(by_gpu)


def utilization(metrics: Mapping[str, float]) -> float | None:
    """A GPU's share of busy time, 0 to 1; None where nothing says it."""
    return next(
        (metrics[name] * scale for name, scale in UTILIZATION.items() if name in metrics), None
    )


def has_risen(before: Mapping[str, float], during: Mapping[str, float]) -> bool:
    """Whether a GPU works more than it did."""
    idle, busy = utilization(before), utilization(during)
    return idle is not None and busy is not None and busy >= min(idle + RISE, 1.0)


def evaluate(before: Values, during: Values, uuid: str, reason: str) -> Result:
    """Whether each GPU has utilization and memory, and those of the loaded one moved.

    + uuid: of the GPU under load; "" where none was loaded
    + reason: why not
    """
    name = "accelerator_metrics"
    if not before:
        remedy = "`gpuboot verify` says what is between exporters and Prometheus"
        return Result(name, "fail", "Prometheus has no series of a GPU", remedy=remedy)
    lines = [f"{gpu} at rest: {_text(metrics)}" for gpu, metrics in before.items()]
    poor = [
        gpu
        for gpu, metrics in before.items()
        if utilization(metrics) is None or USED not in metrics
    ]
    if poor:
        reason = f"without utilization or memory: {', '.join(poor)}"
        remedy = "`exporter.fields` names what exporters read; docs/metrics.md"
        return Result(name, "fail", reason, tuple(lines), remedy)
    if not uuid:
        return Result(name, "not_run", reason, tuple(lines), "free a GPU, then run again")
    lines.append(f"{uuid} under load: {_text(during.get(uuid, {}))}")
    if not has_risen(before.get(uuid, {}), during.get(uuid, {})):
        reason = f"the utilization of {uuid} did not rise under load"
        remedy = f"`gpuboot load` makes the same load, `gpuboot query` shows {uuid}"
        return Result(name, "fail", reason, tuple(lines), remedy)
    summary = (
        "DCGM exporters show utilization and memory of each GPU in Prometheus' format, with "
        "temperature and power where the GPU tells them; utilization rose under load."
    )
    return Result(name, "pass", summary, tuple(lines))


def _text(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {metrics[name]:g}" for name in SERIES if name in metrics) or "nothing"
