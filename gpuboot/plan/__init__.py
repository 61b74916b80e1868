"""What a run changes and what that costs: recorded by operations, shown before and after a run."""

from gpuboot.plan.model import POINTER, Change, Duration, Effect, Item, Kept, Plan, Step, Unknown

__all__ = ["POINTER", "Change", "Duration", "Effect", "Item", "Kept", "Plan", "Step", "Unknown"]
