"""What nvbandwidth prints as JSON (`-j`, since version 0.5).

Layout: json_output.cpp of NVIDIA/nvbandwidth v0.8. nvbandwidth compares what it copied, unless told
not to, and says where it was wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOST_TO_GPU = "host_to_device_memcpy_ce"
GPU_TO_HOST = "device_to_host_memcpy_ce"
GPU_TO_GPU = "device_to_device_memcpy_read_ce"
CASES = (HOST_TO_GPU, GPU_TO_HOST, GPU_TO_GPU)

Matrix = tuple[tuple[float | None, ...], ...]


class BandwidthError(ValueError):
    """Output that is no answer of nvbandwidth; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A test case.

    + gbps: GB/s by row and column; None: nothing is measured there, as from a GPU to itself
    + problem: why there is no matrix, or none to be trusted; "" where it is well
    + waived: it does not apply here, e.g. copies between GPUs where there is one
    """

    gbps: Matrix = ()
    problem: str = ""
    waived: bool = False

    def of(self, gpu: int) -> tuple[float, ...]:
        """What was measured from and to one GPU, by its number."""
        column = [row[gpu] for row in self.gbps if gpu < len(row)]
        row = self.gbps[gpu] if len(self.gbps) > 1 and gpu < len(self.gbps) else ()
        return tuple(value for value in (*column, *row) if value)


@dataclass(frozen=True, kw_only=True)
class Bandwidths:
    """All test cases by name. error: what kept it from going on."""

    version: str = ""
    cases: Mapping[str, Case] = field(default_factory=dict)
    error: str = ""


def parse(text: str) -> Bandwidths:
    """Read an answer. Other programs' lines before and behind it are passed over.

    Raises `BandwidthError`.
    """
    begin = text.find("{") if '"nvbandwidth"' in text else -1
    result = _json(text[begin : text.rfind("}") + 1]) if begin >= 0 else Bandwidths()
    if not result.cases and not result.error:
        last_lines = text.strip().splitlines()[-1:] or ["nothing"]
        raise BandwidthError(f"nvbandwidth printed no result: {last_lines[0][:200]}")
    return result


def _json(text: str) -> Bandwidths:
    try:
        root = json.loads(text)["nvbandwidth"]
        cases = {item["name"]: _case(item) for item in root.get("testcases") or ()}
    except json.JSONDecodeError as error:
        raise BandwidthError(f"the JSON of nvbandwidth is not complete: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BandwidthError(f"the JSON of nvbandwidth has another layout: {error!r}") from None
    return Bandwidths(
        version=str(root.get("version", "")), cases=cases, error=str(root.get("error", ""))
    )


def _case(item: Mapping[str, Any]) -> Case:
    status = str(item.get("status", ""))
    if status != "Passed":
        problem = str(item.get("error") or status or "it has no status")
        return Case(problem=problem, waived=status == "Waived")
    matrix = tuple(tuple(map(_number, row)) for row in item["bandwidth_matrix"])
    return Case(gbps=matrix, problem=str(item.get("error", "")))


def _number(cell: str) -> float | None:
    """A cell in GB/s; None for a GPU to itself: N/A, or 0 in versions before 0.5."""
    return None if cell == "N/A" or float(cell) == 0 else float(cell)
