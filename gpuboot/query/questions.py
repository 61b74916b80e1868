"""Questions about GPUs as they go from a command to where Prometheus is reached.

Each is a dataclass that travels as JSON; `topic` names its kind there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.query import usage_query
from gpuboot.query.profile import answer as profile
from gpuboot.usage import ranges
from gpuboot.usage.capacity import question as capacity
from gpuboot.usage.cost import question as cost
from gpuboot.verify.prometheus import Prometheus


class Question(Protocol):
    """What is asked, with all that the answer depends on."""

    def to_json(self) -> str: ...

    def within(self, settings: Settings) -> Answerable:
        """With what the settings know better. Raises `ValueError`, with the remedy."""
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


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Question]] = {
    "usage": usage_query.from_dict,
    "profile": profile.from_dict,
    "series": ranges.from_dict,
    "cost": cost.from_dict,
    "capacity": capacity.from_dict,
}


def from_json(text: str) -> Question:
    """The inverse of `Question.to_json`."""
    values = json.loads(text)
    return _KINDS[values["topic"]](values)
