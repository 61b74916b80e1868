"""Questions about GPUs as they go from a command to where Prometheus is reached.

Each is a dataclass that travels as JSON; `topic` names its kind there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Protocol

from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.query.profile.answer import ProfileQuestion
from gpuboot.query.usage_query import UsageQuery
from gpuboot.usage import ranges
from gpuboot.usage.capacity import capacity_question as capacity
from gpuboot.usage.cost.cost_question import CostQuestion
from gpuboot.verify.prometheus import Prometheus


class Question(Protocol):
    """What is asked, with all that the answer depends on."""

    def to_json(self) -> str: ...

    def within(self, settings: Settings) -> Answerable:
        """The question completed by the settings. Raises `ValueError`, with the remedy."""
        ...

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        ...


class Answerable(Question, Protocol):
    """A question that lacks nothing."""

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answer as JSON. It raises nothing: a Prometheus without an answer is a reason.

        + cluster: the API server of Prometheus' cluster, where it is known
        """
        ...


_KINDS: Mapping[str, Callable[..., Question]] = {
    "usage": UsageQuery,
    "profile": ProfileQuestion,
    "series": ranges.from_values,
    "cost": CostQuestion,
    "capacity": capacity.from_values,
}


def from_json(text: str) -> Question:
    """The inverse of `Question.to_json`."""
    values = json.loads(text)
    return _KINDS[values["topic"]](**values)
