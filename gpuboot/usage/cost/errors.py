"""What keeps a report from being made."""

from __future__ import annotations


class CostError(ValueError):
    """A cause, and what a person can do about it."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}\n    remedy: {remedy}")


class ConservationError(CostError):
    """The hours do not add up to what is installed: such a report is none."""
