"""Asking Prometheus for series over a window, in pieces that it can bear.

The question travels as JSON from the command line to the deploy that reaches Prometheus through the
leader (`deploys/ranges.py`), and `gpuboot.usage.series` reads its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpuboot.kubernetes.api import ClusterError
from gpuboot.usage.series import History, SeriesError, StepSeries, Window, from_json, from_matrix
from gpuboot.verify.prometheus import Prometheus, PrometheusError

# HTTP codes of Prometheus for a query that it could not carry out: too many samples, too long
_TOO_MUCH = {422, 503, 504}
# the same where there is no code: Prometheus' own words, and a reader that waited in vain
_SLOW = ("too many samples", "timed out", "ReadTimeoutError")


@dataclass(frozen=True)
class RangeQuestion:
    """Queries and the window they are asked for.

    + queries: name -> PromQL, evaluated at the end of each step
    + most: steps that one request asks for
    """

    queries: Mapping[str, str]
    window: Window
    most: int = 168

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> RangeQuestion:
        """The inverse of `to_json`."""
        given = json.loads(text)
        return RangeQuestion(given["queries"], Window(**given["window"]), given["most"])


def read(
    prometheus: Prometheus, question: RangeQuestion, about: Mapping[str, Any] | None = None
) -> History:
    """The answers. Raises `PrometheusError`, and what the reader raises.

    + about: what else is known of where they are from
    """
    pieces = list(question.window.chunks(question.most))
    found = {
        name: _merged(one for piece in pieces for one in _asked(prometheus, expression, piece))
        for name, expression in question.queries.items()
    }
    known = {"retention": prometheus.retention(), **(about or {})}
    return History(question.window, found, known)


def no_answer(reason: str) -> str:
    """The answer, as JSON, when nobody could be asked."""
    return json.dumps({"error": reason})


def answered(text: str) -> History:
    """What a deploy left. Raises `SeriesError` with the reason where nobody could be asked."""
    if reason := json.loads(text).get("error"):
        raise SeriesError(reason)
    return from_json(text)


def _asked(prometheus: Prometheus, expression: str, window: Window) -> list[StepSeries]:
    """One piece; in halves where it is more than Prometheus allows for one query."""
    first = window.start + window.step
    try:
        matrix = prometheus.query_range(expression, first, window.end, window.step)
        return list(from_matrix(matrix, window))
    except (ClusterError, PrometheusError) as error:
        count = len(window.steps)
        if count == 1 or not _too_much(error):
            raise
        halves = window.chunks((count + 1) // 2)
        return [one for half in halves for one in _asked(prometheus, expression, half)]


def _too_much(error: ClusterError | PrometheusError) -> bool:
    if isinstance(error, ClusterError) and error.status is not None:
        return error.status in _TOO_MUCH
    return any(text in str(error) for text in _SLOW)


def _merged(parts: Iterable[StepSeries]) -> tuple[StepSeries, ...]:
    """The parts of each series put together."""
    values: dict[frozenset[tuple[str, str]], dict[int, float]] = {}
    for one in parts:
        values.setdefault(frozenset(one.labels.items()), {}).update(one.values)
    return tuple(StepSeries(dict(labels), points) for labels, points in values.items())
