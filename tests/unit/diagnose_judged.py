"""How surely a symptom comes from a cause: a row of the tables of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.pods import Container, Termination
from gpuboot.diagnose.cause_model import Confidence
from gpuboot.diagnose.facts import Facts
from tests.unit.diagnose_site import (
    NOW,
)

CERTAIN, LIKELY, POSSIBLE = Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE


@dataclass(frozen=True)
class EvidenceCase:
    """A site, and how surely it has the cause. + confidence: None: not at all

    + kind: of its evidence: present, of another reason, or old
    + second_cause: id of a cause that is named too
    """

    id: str
    kind: str
    facts: Facts
    confidence: Confidence | None
    second_cause: str = ""

    def __str__(self) -> str:
        return f"{self.id}-{self.kind}"


def restarted(
    ago: float, reason: str = "Error", code: int = 1, ready: bool = True
) -> dict[str, Any]:
    """A container that ended and was started again: what to replace in its pod."""
    termination = Termination(reason, code, "", NOW - ago)
    return {
        "ready": True,
        "containers": (Container("main", True, 4, "running", "", "", termination),),
    }
