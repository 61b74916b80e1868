"""What the pods of a load print, read into what each GPU did, and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from gpuboot.verify.report.report_model import SIMULATED

_LINE = re.compile(r"(GPU-\S+): (.*)")


@dataclass(frozen=True, kw_only=True)
class GpuLoad:
    """A GPU under load.

    + program: that made it; "" before it began
    + said: its last line
    + ended: it has
    + error: why it did not do what was asked; "" for nothing
    """

    node: str
    uuid: str
    program: str = ""
    said: str = ""
    ended: bool = False
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a load.

    + left: node -> why none of its GPUs was loaded
    + stopped: it was ended before its time
    + simulated: what nodes say of themselves that are simulated
    + error: why nothing can be said; "" otherwise
    """

    kind: str
    asked_s: int
    gpus: tuple[GpuLoad, ...] = ()
    left: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    simulated: str = ""
    error: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def from_json(text: str) -> Outcome:
    """The outcome that `to_json` wrote."""
    data = json.loads(text)
    data["gpus"] = tuple(GpuLoad(**entry) for entry in data["gpus"])
    return Outcome(**data)


def read(node: str, log: str) -> list[GpuLoad]:
    """The GPUs of which a pod's log tells, each once."""
    lines: dict[str, list[str]] = {}
    for line in log.splitlines():
        if match := _LINE.fullmatch(line):
            lines.setdefault(match[1], []).append(match[2])
    return [_of(node, uuid, gpu_lines) for uuid, gpu_lines in lines.items()]


def _of(node: str, uuid: str, lines: Sequence[str]) -> GpuLoad:
    programs = [line.removeprefix("program ") for line in lines if line.startswith("program ")]
    exit_match = re.fullmatch(r"exit (\d+)", lines[-1])
    output_lines = [
        line for line in lines if line.strip() and not line.startswith(("program ", "exit "))
    ]
    error = ""
    if exit_match and exit_match[1] != "0":
        error = " / ".join([*output_lines[-2:], f"exit code {exit_match[1]}"])
    return GpuLoad(
        node=node,
        uuid=uuid,
        program=programs[-1] if programs else "",
        said=output_lines[-1] if output_lines and not error else "",
        ended=exit_match is not None,
        error=error,
    )


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
