"""Series in even steps: what Prometheus answers to a range query, or what a file holds.

A step is known by its beginning. Prometheus evaluates an expression at a step's end, where a
window such as `[1h]` reaches back to its beginning: the hour from 10:00 is asked for at 11:00.
What is not there is unknown: no step is made up, and none is 0 because nothing was said of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT = "gpuboot-series/1"


class SeriesError(ValueError):
    """A file or an answer that cannot be read; the text says where, and the remedy."""


@dataclass(frozen=True)
class Window:
    """A stretch of time in even steps.

    + start, end: unix seconds; a whole number of steps apart
    + step: length of a step in seconds

    Raises `SeriesError` for anything else.
    """

    start: int
    end: int
    step: int

    def __post_init__(self) -> None:
        if self.step <= 0 or self.start >= self.end or (self.end - self.start) % self.step:
            raise SeriesError(
                f"{self.start} to {self.end} is no whole number of steps of {self.step} s"
            )

    @property
    def steps(self) -> range:
        """The beginning of each step."""
        return range(self.start, self.end, self.step)

    def chunks(self, max_steps: int) -> Iterator[Window]:
        """The same time in pieces of at most `max_steps` steps, oldest first."""
        length = max_steps * self.step
        for start in range(self.start, self.end, length):
            yield Window(start, min(start + length, self.end), self.step)


@dataclass(frozen=True)
class StepSeries:
    """A series. values: beginning of a step (unix seconds) -> value; unknown steps are absent."""

    labels: Mapping[str, str]
    values: Mapping[int, float]


@dataclass(frozen=True)
class History:
    """What some queries gave over a window.

    + series: name of a query -> its series; a query without any answer has an empty one
    + metadata: where it is from: `cluster`, `retention`, settings that go with it
    """

    window: Window
    series: Mapping[str, tuple[StepSeries, ...]]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> tuple[StepSeries, ...]:
        """The series of a query; () where Prometheus gave none, or was not asked."""
        return self.series.get(name, ())


def from_matrix(result: Iterable[Mapping[str, Any]], window: Window) -> tuple[StepSeries, ...]:
    """The series of a `matrix`, as Prometheus' query_range answers it.

    NaN and infinite values say nothing, so they are left out. Raises `SeriesError` for something
    that is no matrix, and for a time that is the end of no step of the window.
    """
    merged: dict[frozenset[tuple[str, str]], dict[int, float]] = {}
    try:
        for item in result:
            points = merged.setdefault(frozenset(item["metric"].items()), {})
            for time, value in item["values"]:
                number = float(value)
                if math.isfinite(number):
                    points[_beginning(float(time), window)] = number
    except (AttributeError, KeyError, TypeError) as error:
        raise SeriesError(f"no matrix of Prometheus: {error!r}") from None
    except ValueError as error:
        raise SeriesError(f"no matrix of Prometheus: {error}") from None
    return tuple(StepSeries(dict(labels), values) for labels, values in merged.items())


def to_matrix(series: Iterable[StepSeries], window: Window) -> list[dict[str, Any]]:
    """The inverse of `from_matrix`."""
    return [
        {
            "metric": dict(step_series.labels),
            "values": [
                [time + window.step, str(step_series.values[time])]
                for time in sorted(step_series.values)
            ],
        }
        for step_series in series
    ]


def to_json(history: History) -> str:
    """A file that `from_json` reads: each query's answer as Prometheus gave it."""
    window = history.window
    return json.dumps(
        {
            "format": FORMAT,
            "window": {"start": window.start, "end": window.end, "step": window.step},
            "about": dict(history.metadata),
            "queries": {
                name: to_matrix(query_series, window)
                for name, query_series in history.series.items()
            },
        }
    )


def from_json(text: str) -> History:
    """What a file of recorded answers holds. Raises `SeriesError`."""
    try:
        document = json.loads(text)
        if document.get("format") != FORMAT:
            raise SeriesError(f'no file of recorded answers: its "format" is not "{FORMAT}"')
        window = Window(**document["window"])
        series = {name: from_matrix(matrix, window) for name, matrix in document["queries"].items()}
        return History(window, series, document.get("about", {}))
    except (AttributeError, KeyError, TypeError) as error:
        raise SeriesError(f"no file of recorded answers: {error!r}") from None
    except json.JSONDecodeError as error:
        raise SeriesError(f"no JSON: {error}") from None


def _beginning(end: float, window: Window) -> int:
    """The beginning of the step that ends there."""
    beginning = round(end) - window.step
    if beginning not in window.steps:
        raise SeriesError(f"{round(end)} is the end of no step of the window")
    return beginning
