"""What a run changes and what that costs: recorded by operations, shown before and after a run."""

from gpuboot.plan.model import (
    POINTER,
    Change,
    Decision,
    Duration,
    Effect,
    Item,
    KeptItem,
    Plan,
    Step,
    Unknown,
)

__all__ = [
    "POINTER",
    "Change",
    "Decision",
    "Duration",
    "Effect",
    "Item",
    "KeptItem",
    "Plan",
    "Step",
    "Unknown",
]
