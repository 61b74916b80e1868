"""Rights that somebody has given to everybody."""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.open_rights import INTENT_ANNOTATION
from gpuboot.diagnose.cause_model import Cause, Sighting
from gpuboot.diagnose.facts import Facts


def open_rights(facts: Facts) -> Iterator[Sighting]:
    """Bindings that name who has no credentials, everybody, or every pod."""
    for item in facts.cluster.rights:
        text = f"{item.label} gives {item.holders} {item.role}"
        yield Sighting(evidence=(text,), values={"binding": item.place})


TABLE = (
    Cause(
        id="open-rights",
        meaning="everybody, or every pod, has rights that Kubernetes gives nobody by itself",
        find=open_rights,
        remedy="delete the binding, and see what was done by it meanwhile; where it is meant, "
        f"annotate it with {INTENT_ANNOTATION}=true",
        command="kubectl describe {binding}",
    ),
)
