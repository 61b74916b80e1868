"""Medians with their ranges, and ratios of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

ENOUGH_RUNS = 5  # runs; a median of fewer is marked wherever it is shown


@dataclass(frozen=True)
class Summary:
    """Several values of one quantity."""

    median: float
    least: float
    most: float
    count: int


def summarize(values: Iterable[float]) -> Summary | None:
    """Median and range; None of no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Summary(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def ratio(larger: Summary | None, smaller: Summary | None) -> float | None:
    """How many times the first median is the second; None where either is missing or nothing."""
    if larger is None or smaller is None or smaller.median == 0:
        return None
    return larger.median / smaller.median
