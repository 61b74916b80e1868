"""What the pods of a load print, read into what each GPU did."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

GPUBOOT_PROGRAM = "gpuboot"
_LINE = re.compile(r"(GPU-\S+): (.*)")
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


@dataclass(frozen=True, kw_only=True)
class GpuLoad:
    """One GPU under load.

    + program: that made it: `gpuboot`, or the name of NVIDIA's; "" before it began
    + launches, seconds, per_second, unit: as gpuboot's program counted them; None: it has not
    + said: the last line of another program
    + ended: it has
    + error: why it did not do what was asked; "" for nothing
    """

    node: str
    uuid: str
    program: str = ""
    launches: int | None = None
    seconds: float | None = None
    per_second: float | None = None
    unit: str = ""
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
    counted = (
        [count for count in map(_counted, output_lines) if count]
        if programs[-1:] == [GPUBOOT_PROGRAM]
        else []
    )
    failed = next((line for line in reversed(output_lines) if line.startswith("failed: ")), "")
    error = ""
    if exit_match and exit_match[1] != "0":
        error = failed.removeprefix("failed: ") or " / ".join(
            [*output_lines[-2:], f"exit code {exit_match[1]}"]
        )
    return GpuLoad(
        node=node,
        uuid=uuid,
        program=programs[-1] if programs else "",
        said=output_lines[-1] if output_lines and not counted and not error else "",
        ended=exit_match is not None,
        error=error,
        **(counted[-1] if counted else {}),
    )


def _counted(line: str) -> dict[str, Any]:
    """A line of gpuboot's own program; nothing for others."""
    try:
        data = json.loads(line)
        return {name: data[name] for name in ("launches", "seconds", "per_second", "unit")}
    except (ValueError, KeyError, TypeError):
        return {}


def rate(gpu: GpuLoad) -> str:
    """How much it did, as the program itself counted; "" where it has not said."""
    if gpu.per_second is None:
        return gpu.said
    scale, letter = next((prefix for prefix in _SCALES if gpu.per_second >= prefix[0]), (1.0, ""))
    return f"{gpu.per_second / scale:.3g} {letter}{gpu.unit}"
