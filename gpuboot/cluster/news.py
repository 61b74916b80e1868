"""Chooses the lines of a wait that are worth telling."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

REPEAT_S = 20.0
# what grows by itself is no news
_SECONDS = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+\b|\d+(?:\.\d+)? (?:h|min|s)\b")


@dataclass
class News:
    """Tells a line when it differs in more than seconds, or was told some time ago.

    + write: takes it
    + repeat_s: after how long the same is told again
    """

    write: Callable[[str], object]
    repeat_s: float = REPEAT_S
    _last: str | None = None
    _sent_at: float = 0.0

    def __call__(self, text: str, end: str = "") -> None:
        """+ end: what stands behind the text and is no news, e.g. the seconds that have passed"""
        key, now = _SECONDS.sub("", text), time.monotonic()
        if key != self._last or now - self._sent_at >= self.repeat_s:
            self.write(text + end)
            self._last, self._sent_at = key, now
