"""Questions about GPUs as they go from a command to where Prometheus is reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from gpuboot.config.settings import Settings
from gpuboot.telemetry import usage_query
from gpuboot.telemetry.profile import answer as profile
from gpuboot.verify.prometheus import Prometheus


class Question(Protocol):
    """What is asked, with all that the answer depends on."""

    def to_json(self) -> str: ...

    def within(self, settings: Settings) -> Self:
        """With what the settings know better."""
        ...

    def answer(self, prometheus: Prometheus) -> str:
        """The answer as JSON. It raises nothing: a Prometheus without an answer is a reason."""
        ...

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        ...


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Question]] = {
    "usage": usage_query.from_dict,
    "profile": profile.from_dict,
}


def from_json(text: str) -> Question:
    """The inverse of `Question.to_json`."""
    values = json.loads(text)
    return _KINDS[values["about"]](values)
