"""What the evidence comes to, requirement by requirement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from gpuboot.config.exit_codes import COULD_NOT_TELL, FAILED, OK

Status = Literal["pass", "fail", "not_applicable", "not_run"]
WORDS: Mapping[Status, str] = {
    "pass": "evidenced",
    "fail": "FAILED",
    "not_applicable": "N/A",
    "not_run": "not run",
}


@dataclass(frozen=True)
class Result:
    """What was learnt of one requirement.

    + id: the programme's
    + status: `not_run`: there is no evidence, for or against
    + summary: one sentence; of `not_run` why, of `not_applicable` by which rule
    + observations: what was seen, a line each
    + remedy: what a person can do; "" where nothing has to be done
    """

    id: str
    status: Status
    summary: str
    observations: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True)
class Outcome:
    """The results of one run.

    + kubernetes: version of the API server, with its v
    + started: when, in UTC
    + simulated: what says of itself that it is simulated; "" on real hardware
    + error: why there are no results, with a remedy; ""
    + stopped: it was ended before its time
    """

    results: tuple[Result, ...] = ()
    kubernetes: str = ""
    started: str = ""
    simulated: str = ""
    error: str = ""
    stopped: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def from_json(text: str) -> Outcome:
    """What `Outcome.to_json` wrote."""
    data = json.loads(text)
    results = (
        Result(**{**item, "observations": tuple(item["observations"])}) for item in data["results"]
    )
    return Outcome(**{**data, "results": tuple(results)})


def open_musts(results: Iterable[Result], levels: Mapping[str, str]) -> list[str]:
    """Ids of what the programme demands and has neither evidence nor a rule that excuses it."""
    answered = {item.id for item in results if item.status in ("pass", "not_applicable")}
    return [name for name, level in levels.items() if level == "MUST" and name not in answered]


def exit_code(results: Iterable[Result], levels: Mapping[str, str]) -> int:
    """0: each MUST has evidence or does not apply; 1: one failed; 2: one was not run."""
    total = list(results)
    if any(item.status == "fail" and levels.get(item.id) == "MUST" for item in total):
        return FAILED
    return COULD_NOT_TELL if open_musts(total, levels) else OK
