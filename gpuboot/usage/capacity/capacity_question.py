"""The question about capacity as it goes from the command line to the cluster, and its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gpuboot.cluster.api import ClusterError
from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.usage import ranges as range_questions
from gpuboot.usage.capacity import fit
from gpuboot.usage.ranges import RangeQuestion
from gpuboot.usage.series import History, SeriesError, from_json, to_json
from gpuboot.verify.prometheus import Prometheus, PrometheusError


@dataclass(frozen=True)
class CapacityQuestion:
    """+ ranges: series of demand and supply; shape: what a job takes beside a GPU"""

    ranges: RangeQuestion
    shape: fit.Shape

    topic: Literal["capacity"] = "capacity"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> CapacityQuestion:
        """The question with the cluster's name beside the answers."""
        return replace(self, ranges=self.ranges.within(settings))

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answer as JSON: what one of both cannot tell does not keep the other from it."""
        answer: dict[str, Any] = {}
        try:
            answer["history"] = to_json(range_questions.read(prometheus, self.ranges))
        except (ClusterError, PrometheusError, SeriesError) as error:
            answer["history_error"] = f"Prometheus gives no answer: {error}"
        if cluster is None:
            return json.dumps({**answer, "fit_error": "no API server was asked"})
        try:
            objects = {name: cluster.json(path)["items"] for name, path in fit.PATHS.items()}
            answer["fit"] = asdict(fit.fit(objects["nodes"], objects["pods"], self.shape))
        except ClusterError as error:
            answer["fit_error"] = f"the API server gives no answer: {error}"
        return json.dumps(answer)

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        return json.dumps({"history_error": reason, "fit_error": reason})


def from_values(
    ranges: Mapping[str, Any], shape: Mapping[str, float], topic: Literal["capacity"]
) -> CapacityQuestion:
    """The inverse of `CapacityQuestion.to_json`, read."""
    return CapacityQuestion(range_questions.from_values(**ranges), fit.Shape(**shape), topic)


@dataclass(frozen=True)
class Answer:
    """What a cluster said. Of history and fit what is None has its reason.

    + history_error, fit_error: why; "" where there is an answer
    """

    history: History | None = None
    history_error: str = ""
    fit: fit.Fit | None = None
    fit_error: str = ""


def answered(text: str) -> Answer:
    """Read what a deploy left. Raises `SeriesError` for an answer that cannot be read."""
    document = json.loads(text)
    fit_data = document.get("fit")
    return Answer(
        from_json(document["history"]) if "history" in document else None,
        document.get("history_error", ""),
        None
        if fit_data is None
        else fit.Fit(
            tuple(fit.NodeFit(**entry) for entry in fit_data["nodes"]),
            tuple(fit.Waiting(**entry) for entry in fit_data["waiting"]),
            fit.Shape(**fit_data["shape"]),
        ),
        document.get("fit_error", ""),
    )
