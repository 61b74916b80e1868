"""What a run changes and what that costs: recorded by operations, shown before and after a run."""

from gpuboot.plan.model import Change, Duration, Effect, Item, Plan, Step, Unknown

__all__ = ["Change", "Duration", "Effect", "Item", "Plan", "Step", "Unknown"]
