"""The table that `all_reduce_perf` of nccl-tests prints, and what NCCL's log says of its network.

Lines of other programs stand between its own, as mpirun's and NCCL's. The columns are named by its
head: versions before 2.13 print `error`, a difference, in the place of `#wrong`, a count.

The log, with NCCL_DEBUG=INFO: src/transport/net_ib and src/transport/net.cc of NVIDIA/nccl 2.19 and
later. Adapters that NCCL_IB_HCA leaves out are not in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

_RANK = re.compile(
    r"^#\s+Rank\s+\d+\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d+) (.*)$"
)
_HEAD = re.compile(r"^#\s+size\s+count\s.*\bbusbw\b")
_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z]\w*\s")
_OUT_OF_BOUNDS = re.compile(r"^# Out of bounds values : (\d+) (\w+)", re.MULTILINE)
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s*: ([\d.]+)", re.MULTILINE)
_PROBLEM = re.compile(r"Test (?:NCCL|CUDA) failure.*|.*NCCL WARN.*|.*unhandled \w+ error.*")


class NcclError(ValueError):
    """Output that is none of nccl-tests; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line for a size of message. busbw: GB/s, the better of out-of-place and in-place."""

    bytes: int
    busbw: float
    wrong: int | None


@dataclass(frozen=True, kw_only=True)
class AllReduce:
    """A run of `all_reduce_perf`.

    + ranks: (host, device) of each GPU that took part
    + wrong: values that were out of bounds; None: it did not come to that line
    + problems: what NCCL or CUDA said that went wrong
    """

    ranks: tuple[tuple[str, int], ...] = ()
    rows: tuple[Row, ...] = ()
    wrong: int | None = None
    average: float | None = None
    problems: tuple[str, ...] = ()

    @property
    def largest(self) -> Row | None:
        """The row of the largest message: small ones show latency, not bandwidth."""
        return max(self.rows, key=lambda row: row.bytes, default=None)


def parse(text: str) -> AllReduce:
    """Read its output. Raises `NcclError`."""
    lines = text.splitlines()
    columns = next((line.split()[1:] for line in lines if _HEAD.match(line)), [])
    result = AllReduce(
        ranks=tuple((m[1], int(m[2])) for line in lines if (m := _RANK.match(line))),
        rows=tuple(_row(line, columns) for line in lines if _ROW.match(line)),
        wrong=int(match[1]) if (match := _OUT_OF_BOUNDS.search(text)) else None,
        average=float(match[1]) if (match := _AVERAGE.search(text)) else None,
        problems=tuple(
            dict.fromkeys(m[0].strip()[:200] for line in lines if (m := _PROBLEM.search(line)))
        ),
    )
    if not result.ranks and not result.rows and not result.problems:
        last_lines = text.strip().splitlines()[-1:] or ["nothing"]
        raise NcclError(f"all_reduce_perf printed no table: {last_lines[0][:200]}")
    return result


def _row(line: str, columns: Sequence[str]) -> Row:
    """A line of the table; each of its last columns stands there twice."""
    cells = line.split()
    if len(cells) != len(columns):
        raise NcclError(f"a line of its table is cut off: {line.strip()[:200]}")
    busbw = [float(cell) for name, cell in zip(columns, cells, strict=True) if name == "busbw"]
    counted = [cell for name, cell in zip(columns, cells, strict=True) if name == "#wrong"]
    wrong_counts = [
        int(cell) for cell in counted if cell.isdigit()
    ]  # N/A where nothing is compared
    return Row(
        bytes=int(cells[0]), busbw=max(busbw), wrong=sum(wrong_counts) if wrong_counts else None
    )


_ADAPTER = re.compile(
    r"^(\S+?):\d+:\d+ \[\d+\] NCCL INFO NET/IB ?: \[\d+\] ?([\w.-]+):\S*/(\w+) .*?\bspeed=(\d+)",
    re.MULTILINE,
)
_CHANNEL = re.compile(r"NCCL INFO Channel .* via NET/([^/\n]+)/")
_NETWORK_CHOICE = re.compile(r"NCCL INFO (?:Using network (.+)|Assigned NET plugin (.+) to comm)")


@dataclass(frozen=True)
class Network:
    """+ name: as NCCL calls it: IB, Socket, or that of a plugin; "" where it does not say
    + layer: of its adapters: IB or RoCE; "" for others
    + gbps: Gb/s of all adapters of the node that has least; None where it does not say
    """

    name: str = ""
    layer: str = ""
    gbps: float | None = None

    def __str__(self) -> str:
        speed = f", {self.gbps:g} Gb/s a node" if self.gbps is not None else ""
        return f"{self.layer or self.name or 'a network that NCCL does not name'}{speed}"


def network(text: str) -> Network:
    """The network that a log of NCCL tells. Lines of other programs stand between its own."""
    used = [match[1] for match in _CHANNEL.finditer(text)]
    used += [(match[1] or match[2]).strip() for match in _NETWORK_CHOICE.finditer(text)]
    name = used[0] if used else ""
    if name != "IB":
        return Network(name)
    speeds: dict[str, dict[str, int]] = defaultdict(dict)
    layers = set[str]()
    for host, adapter, layer, speed in _ADAPTER.findall(text):
        speeds[host][adapter] = int(speed)
        layers.add(layer)
    slowest = min((sum(of.values()) for of in speeds.values()), default=None)
    return Network(
        name,
        layers.pop() if len(layers) == 1 else "",
        slowest / 1000 if slowest is not None else None,
    )
