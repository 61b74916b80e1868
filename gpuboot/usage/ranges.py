"""Asking Prometheus for series over a window, in pieces that it can bear.

The question travels as JSON from the command line to the deploy that reaches Prometheus through the
leader (`deploys/query.py`), and `gpuboot.usage.series` reads its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.usage.series import (
    History,
    SeriesError,
    StepSeries,
    Window,
    from_json,
    from_matrix,
    to_json,
)
from gpuboot.verify.prometheus import Prometheus, PrometheusError

# HTTP codes of Prometheus for a query that it could not carry out: too many samples, too long
_TOO_MUCH = {422, 503, 504}
# the same where there is no code: Prometheus' own words, and a reader that waited in vain
_SLOW = ("too many samples", "timed out", "no answer within")


@dataclass(frozen=True)
class RangeQuestion:
    """Queries and the window they are asked for.

    + queries: name -> PromQL, evaluated at the end of each step
    + most: steps that one request asks for
    + site_metadata: of where the answers are from, beside them
    """

    queries: Mapping[str, str]
    window: Window
    most: int = 168
    site_metadata: Mapping[str, Any] = field(default_factory=dict)

    topic: Literal["series"] = "series"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> RangeQuestion:
        """The question with the cluster's name and its settings on cost beside the answers."""
        cost = settings.cost.model_dump(mode="json")
        return replace(self, site_metadata={"cluster": settings.cluster.name, "cost": cost})

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answers as JSON, or the reason for none."""
        try:
            return to_json(read(prometheus, self))
        except (ClusterError, PrometheusError, SeriesError) as error:
            return self.no_answer(str(error))

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        return json.dumps({"error": reason})


def from_values(window: Mapping[str, int], **values: Any) -> RangeQuestion:
    """The inverse of `RangeQuestion.to_json`, read."""
    return RangeQuestion(window=Window(**window), **values)


def read(prometheus: Prometheus, question: RangeQuestion) -> History:
    """The answers. Raises `PrometheusError`, and what the reader raises."""
    pieces = list(question.window.chunks(question.most))
    series = {
        name: _merged(
            part for piece in pieces for part in _query_window(prometheus, expression, piece)
        )
        for name, expression in question.queries.items()
    }
    metadata = {"retention": prometheus.retention(), **question.site_metadata}
    return History(question.window, series, metadata)


def answered(text: str) -> History:
    """Read what a deploy left. Raises `SeriesError` with the reason where it left no answer."""
    if reason := json.loads(text).get("error"):
        raise SeriesError(reason)
    return from_json(text)


def _query_window(prometheus: Prometheus, expression: str, window: Window) -> list[StepSeries]:
    """Query one window, in halves where it is more than Prometheus allows for one query."""
    first = window.start + window.step
    try:
        matrix = prometheus.query_range(expression, first, window.end, window.step)
        return list(from_matrix(matrix, window))
    except (ClusterError, PrometheusError) as error:
        count = len(window.steps)
        if count == 1 or not _too_much(error):
            raise
        halves = window.chunks((count + 1) // 2)
        return [part for half in halves for part in _query_window(prometheus, expression, half)]


def _too_much(error: ClusterError | PrometheusError) -> bool:
    if isinstance(error, ClusterError) and error.status is not None:
        return error.status in _TOO_MUCH
    return any(text in str(error) for text in _SLOW)


def _merged(parts: Iterable[StepSeries]) -> tuple[StepSeries, ...]:
    """The parts of each series put together."""
    values: dict[frozenset[tuple[str, str]], dict[int, float]] = {}
    for part in parts:
        values.setdefault(frozenset(part.labels.items()), {}).update(part.values)
    return tuple(StepSeries(dict(labels), points) for labels, points in values.items())
