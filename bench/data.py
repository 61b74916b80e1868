"""What was measured, for tables and plots: a quantity of a side in a cell, over its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.matrix import Cell, parse
from bench.results import samples
from bench.statistics import Summary, ratio, summarize

SIDES = {
    "gpuboot": "gpuboot",
    "ansible": "Ansible",
    "mitogen": "Ansible + Mitogen",
    "pyinfra": "plain pyinfra",
}


@dataclass(frozen=True)
class Data:
    """Records of one state of the code, as `bench.results` keeps them."""

    records: Sequence[Mapping[str, Any]]

    def summary(self, cell: Cell, side: str, quantity: str) -> Summary | None:
        """The summary of a field of `Measured`, or of `bytes`: those of both directions."""
        runs = (record for record in samples(self.records, cell) if record["side"] == side)
        return summarize(_value(record, quantity) for record in runs)

    def faster(self, cell: Cell, than: str) -> float | None:
        """How many times the wall time of gpuboot another side takes."""
        seconds = [self.summary(cell, side, "seconds") for side in (than, "gpuboot")]
        return ratio(*seconds)

    def count(self, cell: Cell) -> int:
        """How often every side was measured."""
        summaries = (self.summary(cell, side, "seconds") for side in SIDES)
        return min(summary.count if summary else 0 for summary in summaries)

    def cells(self) -> list[Cell]:
        """The cells with any sample, sorted."""
        names = {record["cell"] for record in self.records if record["kind"] == "sample"}
        return sorted(cell for name in names for cell in parse(name))

    def last(self, kind: str) -> Mapping[str, Any] | None:
        """The newest record of a kind."""
        return next((record for record in reversed(self.records) if record["kind"] == kind), None)


def _value(sample: Mapping[str, Any], quantity: str) -> float:
    if quantity == "bytes":
        return float(sample["sent"] + sample["received"])
    return float(sample[quantity])


def newest(records: Sequence[Mapping[str, Any]]) -> Data:
    """The records of the code that was measured last."""
    timed = [record for record in records if record["kind"] == "sample"]
    code = timed[-1]["code"] if timed else None
    return Data([record for record in records if record["code"] == code])
