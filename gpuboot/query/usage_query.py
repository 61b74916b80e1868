"""A question about GPU load as it goes from the command line to where Prometheus is reached."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gpuboot.cluster.objects import JsonReader
from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.query.usage import METRICS, Answer, Kind, Usage, unknown
from gpuboot.verify.prometheus import Prometheus

_FIELD = re.compile(r"\bDCGM_\w+")


@dataclass(frozen=True)
class UsageQuery:
    """A question about the load of a pod, a namespace or a GPU.

    + window_s: what is averaged over
    + stale_s: older samples count as none; 0: two scrape intervals of the settings
    """

    kind: Kind
    name: str
    namespace: str = ""
    window_s: float = 120.0
    stale_s: float = 0.0

    topic: Literal["usage"] = "usage"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def within(self, settings: Settings) -> UsageQuery:
        """The question; where it names no age of stale samples, with that of the settings."""
        return replace(self, stale_s=self.stale_s or 2 * seconds(settings.exporter.scrape_interval))

    def answer(self, prometheus: Prometheus, cluster: JsonReader | None = None) -> str:
        """The answer as JSON."""
        usage = Usage(prometheus, self.stale_s or 30.0, self.window_s)
        return _json(usage.answer(self.kind, self.name, self.namespace))

    def no_answer(self, reason: str) -> str:
        """The answer, as JSON, when nobody could be asked."""
        empty = Answer(self.kind, self.name, self.namespace, self.window_s)
        return _json(unknown(empty, reason))


def text(answer: dict[str, Any], metrics: tuple[str, ...] = METRICS) -> str:
    """The answer for people."""
    prefix = f"{answer['namespace']}/" if answer["kind"] == "pod" else ""
    gpus = answer["gpus"]
    names_itself = answer["kind"] == "gpu" and gpus == [answer["name"]]  # is named already
    lines = [
        f"{answer['kind']} {prefix}{answer['name']}" + ("" if names_itself else f": {_count(gpus)}")
    ]
    lines[0] += f" on {', '.join(answer['nodes'])}" if answer["nodes"] else ""
    for name in metrics:
        value = answer["values"][name]
        if value["value"] is None:
            lines.append(f"  {name:<7} unknown: {value['reason']}")
            continue
        age = f"newest sample {value['age_s']:.0f} s old"
        fields = dict.fromkeys(_FIELD.findall(value["source"]))
        lines.append(f"  {name:<7} {value['value']:7.1%}  {age}  of {', '.join(fields)}")
    return "\n".join([*lines, *(f"  note: {note}" for note in answer["notes"])])


def _count(gpus: list[str]) -> str:
    if not gpus:
        return "no GPU known"
    return gpus[0] if len(gpus) == 1 else f"{len(gpus)} GPUs"


def _json(answer: Answer) -> str:
    return json.dumps(answer.to_json(), indent=1)
