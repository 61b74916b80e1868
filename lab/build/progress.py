"""Progress of a queue of builds: which one runs, how many are left, and for how long.

Lines go to a `Callable[[str], None]`, so they read the same in a terminal and in a log. The time
a build took is kept in the cache, to estimate from when it runs again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[str], None]

HEARTBEAT = 30.0  # seconds between lines while one build runs


def duration(seconds: float) -> str:
    """`42 s` or `12 min`: rounded the way a person would say it."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class BuildTimes:
    """How long each build took the last time on this host, in seconds, in one small file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            recorded = json.loads(path.read_text())
            self.seconds = {str(name): float(value) for name, value in recorded.items()}
        except (OSError, ValueError, AttributeError):
            self.seconds = {}  # only estimates hang on it

    def record(self, name: str, seconds: float) -> None:
        """Note that `name` took `seconds`."""
        self.seconds[name] = round(seconds, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".tmp")
        part.write_text(json.dumps(self.seconds, indent=1, sort_keys=True) + "\n")
        part.replace(self.path)


class BuildQueue:
    """Builds to be done one after the other, with an estimate in seconds for each."""

    def __init__(self, estimates: Mapping[str, float], say: Progress, times: BuildTimes) -> None:
        self.names: Sequence[str] = list(estimates)
        self.estimates = {**estimates, **{n: times.seconds.get(n, e) for n, e in estimates.items()}}
        self.say = say
        self.times = times
        self.seconds_by_step: dict[str, float] = {}

    def remaining_s(self, current: str = "", running: float = 0.0) -> float:
        """Seconds that the builds not done yet will take, with `current` in its `running`th."""
        open_names = [name for name in self.names if name not in self.seconds_by_step]
        total = sum(self.estimates[name] for name in open_names if name != current)
        return total + max(0.0, self.estimates.get(current, 0.0) - running)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Do one of them, with a line when it starts, every half minute, and when it has ended."""
        place = f"[{len(self.seconds_by_step) + 1}/{len(self.names)}]"
        estimate, remaining = duration(self.estimates[name]), duration(self.remaining_s())
        self.say(f"{place} {name}: about {estimate}; all that is left: about {remaining}")
        started = time.monotonic()
        finished = threading.Event()
        beat = threading.Thread(
            target=self._beat, args=(place, name, started, finished), daemon=True
        )
        beat.start()
        try:
            yield
        finally:
            finished.set()
            beat.join()
        self.seconds_by_step[name] = time.monotonic() - started
        self.times.record(name, self.seconds_by_step[name])
        self.say(f"{place} {name}: made in {duration(self.seconds_by_step[name])}")

    def _beat(self, place: str, name: str, started: float, finished: threading.Event) -> None:
        while not finished.wait(HEARTBEAT):
            running = time.monotonic() - started
            remaining = duration(self.remaining_s(name, running))
            self.say(f"{place} {name}: {duration(running)} so far; left: about {remaining}")

    def table(self) -> str:
        """Seconds of each build that was done, and their sum, for people to read."""
        width = max(map(len, (*self.seconds_by_step, "all")))
        lines = [
            f"{name:{width}} {seconds:8.1f} s" for name, seconds in self.seconds_by_step.items()
        ]
        return "\n".join([*lines, f"{'all':{width}} {sum(self.seconds_by_step.values()):8.1f} s"])
