"""The link `nvlink`: no GPU has fewer NVLinks than another one of its model beside it.

A GPU without its NVLinks computes, and NCCL puts it apart: training goes on, but slower.
How many links a model has depends on its board and bridges, so GPUs are compared with each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpuboot.verify.checks.host_check import TIMED_OUT, HostCheck, Printed
from gpuboot.verify.checks.link import Link
from gpuboot.verify.checks.one_file import Says

_GPU = re.compile(r"^GPU \d+: .*\(UUID: (GPU-[^)]+)\)$")
_ACTIVE = re.compile(r"^Link \d+: [\d.]+ GB/s$")
_KNOWN = re.compile(
    r"^(Link \d+: (<inactive>|[\d.]+ GB/s)|(NVML: )?Unable to retrieve NVLink information.*)$", re.I
)
_REMEDY = (
    "see `nvidia-smi nvlink --status` and `--errorcounters`, and NVRM's lines in the kernel log; "
    "drain the node and reset its GPUs; look at the bridges, or at the board and its fabric manager"
)


def _evaluate(gpus: Mapping[str, str], printed: Printed) -> list[Says]:
    if printed.exit == TIMED_OUT:
        return [_unknown("`nvidia-smi nvlink --status` did not end in time")]
    lines = [line.strip() for line in printed.text.splitlines() if line.strip()]
    if not any(map(_GPU.match, lines)):
        return []  # a driver that has no such command, or does not answer: other links say so
    active = _active(lines)
    if not any(active.values()):
        return []
    if other := [line for line in lines if not _GPU.match(line) and not _KNOWN.match(line)]:
        return [_unknown(f"`nvidia-smi nvlink --status` says: {other[0][:100]}")]
    return [_of_gpu(uuid, gpus, active) for uuid in gpus]


def _unknown(why: str, uuid: str | None = None) -> Says:
    remedy = "run it on the node, and compare it by hand; the kernel log may tell more"
    return Says(status="unknown", detail=why, remedy=remedy, uuid=uuid)


def _active(lines: Sequence[str]) -> dict[str, int]:
    """UUID -> its links that are up."""
    found: dict[str, int] = {}
    uuid = ""
    for line in lines:
        if match := _GPU.match(line):
            uuid = match[1]
            found[uuid] = 0
        elif uuid and _ACTIVE.match(line):
            found[uuid] += 1
    return found


def _of_gpu(uuid: str, gpus: Mapping[str, str], active: Mapping[str, int]) -> Says:
    if uuid not in active:
        return _unknown("`nvidia-smi nvlink --status` does not list it", uuid)
    own = active[uuid]
    most = max(active.get(other, 0) for other, model in gpus.items() if model == gpus[uuid])
    if own < most:
        why = f"{own} NVLinks are up, and {most} of another GPU of its model beside it"
        return Says(status="fail", detail=why, remedy=_REMEDY, uuid=uuid)
    said = f"{own} NVLinks are up" if own else "it has none"
    return Says(status="pass", detail=said, uuid=uuid)


CHECK = HostCheck(
    link=Link(
        name="nvlink",
        passes="as many NVLinks are up as of its neighbours",
        facts="`nvidia-smi nvlink --status`; only on hosts with NVLinks",
        fails="fewer NVLinks are up than of another GPU of its model on the host",
        remedy="see `nvidia-smi nvlink --status`",
        subject="card",
        docker=True,
    ),
    behind="nvidia-smi",
    command="nvidia-smi nvlink --status 2>&1",
    evaluate=_evaluate,
)
