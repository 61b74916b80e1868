"""What a load did, in words, and what to type to see it."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.verify.load.load_answers import GpuLoad, Outcome
from gpuboot.verify.report.report_model import SIMULATED

PROFILED_S = 600  # `gpuboot profile` goes by means of five minutes, within a window


def text(outcome: Outcome, inventory: str) -> str:
    """The lines for a terminal. + inventory: as commands name it"""
    return "\n".join(_lines(outcome, inventory))


def _lines(outcome: Outcome, inventory: str) -> Iterator[str]:
    if outcome.error:
        yield outcome.error
    suffix = ", ended before its time" if outcome.stopped else ""
    yield f"{outcome.kind}, {outcome.asked_s} s asked for{suffix}"
    if outcome.simulated:
        yield SIMULATED.format(outcome.simulated)
    for gpu in outcome.gpus:
        yield f"{gpu.node} {gpu.uuid}: {_gpu(gpu)}"
    for node, reason in outcome.left.items():
        yield f"{node}: not loaded: {reason}"
    if not outcome.gpus:
        yield "no GPU was loaded"
        return
    yield "to see it:"
    first = outcome.gpus[0]
    yield f"  gpuboot query {inventory} gpu {first.uuid}"
    yield f"  gpuboot profile {inventory} node {first.node}"
    if outcome.asked_s < PROFILED_S:
        yield f"  (for its class, which is of means of five minutes: --seconds {PROFILED_S})"


def _gpu(gpu: GpuLoad) -> str:
    if gpu.error:
        return f"failed: {gpu.error}"
    if not gpu.program:
        return "nothing was counted"
    return f"{gpu.said or 'nothing was counted'}, by {gpu.program}"
