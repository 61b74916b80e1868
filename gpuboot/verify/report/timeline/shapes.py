"""What the picture of a run consists of. All places are pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

FONT = 12.0
_CHARACTER = 0.62  # of the font size, on average and a little more


@dataclass(frozen=True)
class Text:
    """A text. + y: of its base line; + end: x is where it ends, not where it begins"""

    x: float
    y: float
    text: str
    end: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom, as estimated."""
        width = text_width(self.text)
        left_x = self.x - width if self.end else self.x
        return left_x, self.y - FONT * 0.8, left_x + width, self.y + FONT * 0.2


@dataclass(frozen=True)
class Bar:
    """Something that took time. + kind: `work`, `changed` or `wait`; + title: what it was"""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True)
class Band:
    """The time of one stage or phase, over all lanes. + y: where the line from its name begins"""

    x: float
    width: float
    y: float
    even: bool


@dataclass
class Picture:
    """All that is drawn. + chain: corners of the line of the longest chain"""

    width: float
    height: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    texts: list[Text] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    chain: list[tuple[float, float]] = field(default_factory=list)


def text_width(text: str) -> float:
    """Pixels of a text, as estimated."""
    return len(text) * FONT * _CHARACTER


def tick_step(seconds: float, max_ticks: float) -> float:
    """Seconds between two ticks, of which there are about `max_ticks` at most."""
    for step in (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800):
        if seconds / step <= max_ticks:
            return float(step)
    return 3600.0 * ceil(seconds / max_ticks / 3600)


def duration(seconds: float) -> str:
    """Seconds for a person: `0.5 s`, `20 s`, `2 min`, `3:20 min`."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes}:{remainder:02} min" if remainder else f"{minutes} min"
