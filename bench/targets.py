"""What a no-op run of the host layers is meant to reach, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass

from bench.data import Data
from bench.matrix import Cell
from bench.statistics import ratio


@dataclass(frozen=True)
class Target:
    """A limit for one figure.

    + than: another side, whose wall time is to be so many times gpuboot's; "": see `quantity`
    + quantity: of gpuboot, which is to be no more than the limit
    + compared: the cell whose figure is to be divided by; None: the figure itself counts
    """

    text: str
    limit: float
    cell: Cell
    than: str = ""
    quantity: str = "seconds"
    compared: Cell | None = None

    def value(self, data: Data) -> float | None:
        """The figure; None where it was not measured."""
        if self.than:
            return data.faster(self.cell, self.than)
        summary = data.summary(self.cell, "gpuboot", self.quantity)
        if self.compared is not None:
            return ratio(summary, data.summary(self.compared, "gpuboot", self.quantity))
        return summary.median if summary else None

    def is_met(self, value: float) -> bool:
        """Whether a figure is good enough."""
        return value >= self.limit if self.than else value <= self.limit

    @property
    def unit(self) -> str:
        return "×" if self.than or self.compared else " s"


ONE_HOST, TWO, MANY, FAR = (
    Cell("nothing", 1),
    Cell("nothing", 2),
    Cell("nothing", 32),
    Cell("nothing", 1, "80ms"),
)

TARGETS = (
    Target("faster than Ansible, 1 host", 25, ONE_HOST, than="ansible"),
    Target("faster than Ansible with Mitogen, 1 host", 8, ONE_HOST, than="mitogen"),
    Target("faster than Ansible, 32 hosts", 10, MANY, than="ansible"),
    Target("faster than Ansible with Mitogen, 32 hosts", 4, MANY, than="mitogen"),
    Target("faster than Ansible, 1 host at 80 ms", 15, FAR, than="ansible"),
    Target("faster than Ansible with Mitogen, 1 host at 80 ms", 5, FAR, than="mitogen"),
    Target("CPU time of the controller, 1 host", 1.5, ONE_HOST, quantity="cpu_s"),
    Target("CPU time of the controller, 32 hosts", 12, MANY, quantity="cpu_s"),
    Target("wall time on 32 hosts against that on 2", 2, MANY, compared=TWO),
)
