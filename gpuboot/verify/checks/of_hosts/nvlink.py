"""The link `nvlink`: no GPU has fewer NVLinks than those that it is to be linked with.

A GPU without its NVLinks computes, and NCCL puts it apart: training goes on, but slower.
How many links a model has depends on its board and bridges, so GPUs are compared with each other:
on a board those of one model, with bridges a card with those that its links lead to. A card without
a bridge has no links, and lacks none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuboot.verify.checks.one_file import TIMED_OUT, CheckVerdict, CommandOutput, HostCheck, Link

_GPU = re.compile(r"^GPU \d+: .*\(UUID: (GPU-[^)]+)\)$")
_ACTIVE = re.compile(r"^Link \d+: [\d.]+ GB/s$")
_REMOTE = re.compile(r"^Link \d+: Remote Device ([0-9A-F:.]+): Link \d+$", re.I)
_ADDRESS = re.compile(r"^(GPU-[0-9a-z-]+), ([0-9A-F]{8}:[0-9A-F:.]+)$", re.I)
_KNOWN_LINE = re.compile(
    r"^(Link \d+: (<inactive>|[\d.]+ GB/s)|(NVML: )?Unable to retrieve NVLink (remote )?information"
    r".*)$",
    re.I,
)
# cards that stand in PCIe slots, which bridges may link; `NVL` is not the rack of `NVL72`
_CARDS = re.compile(r"PCIe|NVL\b|GeForce|RTX|Quadro|TITAN|\bA(10|30|40)\b", re.I)
_REMEDY = (
    "see `nvidia-smi nvlink --status` and `--errorcounters`, and NVRM's lines in the kernel log; "
    "drain the node and reset its GPUs; look at the bridges, or at the board and its fabric manager"
)


def _evaluate(gpus: Mapping[str, str], output: CommandOutput) -> list[CheckVerdict]:
    if output.exit == TIMED_OUT:
        return [_unknown("`nvidia-smi nvlink --status` did not end in time")]
    lines = [line.strip() for line in output.text.splitlines() if line.strip()]
    if not any(map(_GPU.match, lines)):
        return []  # a driver that has no such command, or does not answer: other links say so
    links = _links(lines)
    if not any(links.active.values()):
        return []
    patterns = (_GPU, _KNOWN_LINE, _REMOTE, _ADDRESS)
    if unknown_lines := [
        line for line in lines if not any(pattern.match(line) for pattern in patterns)
    ]:
        return [_unknown(f"`nvidia-smi nvlink --status` says: {unknown_lines[0][:100]}")]
    return [_of_gpu(uuid, gpus, links) for uuid in gpus]


def _unknown(reason: str, uuid: str | None = None) -> CheckVerdict:
    remedy = "run it on the node, and compare it by hand; the kernel log may tell more"
    return CheckVerdict(status="unknown", detail=reason, remedy=remedy, uuid=uuid)


@dataclass(frozen=True)
class _Links:
    """Number of links that are up, and their other ends (UUIDs or addresses), by GPU's UUID."""

    active: Mapping[str, int]
    ends: Mapping[str, frozenset[str]]


def _links(lines: Sequence[str]) -> _Links:
    active: dict[str, int] = {}
    ends: dict[str, set[str]] = {}
    addresses: dict[str, str] = {}
    uuid = ""
    for line in lines:
        if match := _GPU.match(line):
            uuid = match[1]
            active.setdefault(uuid, 0)
        elif uuid and _ACTIVE.match(line):
            active[uuid] += 1
        elif uuid and (match := _REMOTE.match(line)):
            ends.setdefault(uuid, set()).add(match[1].upper())
        elif match := _ADDRESS.match(line):
            addresses[match[2].upper()] = match[1]
    if not addresses:
        return _Links(active, {})
    peers = {gpu: frozenset(addresses.get(end, end) for end in all_) for gpu, all_ in ends.items()}
    return _Links(active, peers)


def _of_gpu(uuid: str, gpus: Mapping[str, str], links: _Links) -> CheckVerdict:
    if uuid not in links.active:
        return _unknown("`nvidia-smi nvlink --status` does not list it", uuid)
    link_count = links.active[uuid]
    similar_gpus = [peer for peer, model in gpus.items() if model == gpus[uuid]]
    reference = "another GPU of its model beside it"
    if _bridged(gpus[uuid], similar_gpus, links):
        reference = "a card that is bridged with it" if links.ends else reference
        similar_gpus = [uuid, *(peer for peer in links.ends.get(uuid, ()) if peer in gpus)]
        if link_count and not links.ends:  # an old driver: those that have a bridge as well
            similar_gpus = [peer for peer, model in gpus.items() if model == gpus[uuid]]
    maximum = max(links.active.get(peer, 0) for peer in similar_gpus)
    if link_count < maximum:
        reason = f"{link_count} NVLinks are up, and {maximum} of {reference}"
        return CheckVerdict(status="fail", detail=reason, remedy=_REMEDY, uuid=uuid)
    detail = f"{link_count} NVLinks are up" if link_count else "it has none"
    return CheckVerdict(status="pass", detail=detail, uuid=uuid)


def _bridged(model: str, similar_gpus: Sequence[str], links: _Links) -> bool:
    """Whether links of a model are bridges between cards, and not those of a board.

    + similar_gpus: UUIDs of the GPUs of this model
    """
    ends = {end for uuid in similar_gpus for end in links.ends.get(uuid, ())}
    return bool(_CARDS.search(model)) and all(end in links.active for end in ends)


CHECK = HostCheck(
    link=Link(
        name="nvlink",
        passes="as many NVLinks are up as of its neighbours",
        facts="`nvidia-smi nvlink --status` and `-R`; only on hosts with NVLinks",
        fails="fewer NVLinks are up than of another GPU of its model on its board, or of a card "
        "that a bridge links with it",
        remedy="see `nvidia-smi nvlink --status`",
        subject="card",
        docker=True,
    ),
    behind="nvidia-smi",
    # what links lead to only says more: of a driver that does not tell, nothing is read
    command="nvidia-smi nvlink --status 2>&1 && "
    "{ nvidia-smi nvlink -R | grep -e ^GPU -e 'Remote Device'; "
    "nvidia-smi --query-gpu=uuid,pci.bus_id --format=csv,noheader; } 2>/dev/null",
    evaluate=_evaluate,
)
