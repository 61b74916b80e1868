"""Where commands get series over a window from: the cluster's Prometheus, or any by its address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuboot.cli import asking, runs

if TYPE_CHECKING:
    from gpuboot.usage.cost.cost_question import CostQuestion
    from gpuboot.usage.ranges import RangeQuestion
    from gpuboot.usage.series import History


def through_leader(
    question: RangeQuestion | CostQuestion, inventory: str, data: Sequence[str] = ()
) -> History:
    """What the Prometheus of an inventory's cluster answers; ends the command where none does."""
    from gpuboot.usage.ranges import answered
    from gpuboot.usage.series import SeriesError

    answer = asking.through_leader(question, inventory, data)
    try:
        return answered(answer)
    except SeriesError as error:
        if "remedy: " in str(error):
            runs.stop(str(error))
        runs.stop(f"Prometheus gives no answer: {error}\n    remedy: `gpuboot verify {inventory}`")


def at_address(
    question: RangeQuestion, url: str, token_file: Path | None, ca_file: Path | None
) -> History:
    """What the Prometheus at an address answers; ends the command where none does."""
    from gpuboot.usage.ranges import read
    from gpuboot.usage.series import SeriesError
    from gpuboot.verify.prometheus import PrometheusError

    prometheus = asking.prometheus_at(url, token_file, ca_file)
    try:
        return read(prometheus, question)
    except (OSError, ValueError, SeriesError, PrometheusError) as error:
        runs.stop(str(error))
