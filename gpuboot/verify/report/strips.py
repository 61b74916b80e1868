"""What a page shows of the history of GPUs: for each a line of time, coloured by its state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stretch:
    """A time in which nothing changed.

    + status: pass, fail, not_covered, or "gone"
    + left, width: of the axis, in percent
    + text: what was known then, with its dates
    """

    status: str
    left: float
    width: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A moment at which a GPU moved or came back, or took another's place.

    + left: on the axis, in percent
    """

    left: float
    text: str


@dataclass(frozen=True)
class Strip:
    """The history of one GPU.

    + eventful: it failed, moved, went or came
    """

    uuid: str
    name: str
    node: str
    pci: str
    faults: int
    stretches: tuple[Stretch, ...]
    marks: tuple[Mark, ...]
    eventful: bool


@dataclass(frozen=True)
class Strips:
    """All strips on one axis of time.

    + ticks: (place on the axis in percent, date)
    """

    ticks: tuple[tuple[float, str], ...] = ()
    gpus: tuple[Strip, ...] = ()
