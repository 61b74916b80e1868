"""Namespaces that are being deleted: what they wait for, in the words of the API server."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpuboot.plan import Decision

Json = Mapping[str, Any]

OPERATION = "Compare namespaces that are being deleted"


def terminating(items: Iterable[Json]) -> dict[str, str]:
    """Name -> what it waits for, of each namespace of the API that is being deleted."""
    return {
        item["metadata"]["name"]: _reason(item)
        for item in items
        if item["metadata"].get("deletionTimestamp")
    }


def true_conditions(item: Json) -> list[Json]:
    """The conditions of a namespace that hold: what its deletion waits for."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return [condition for condition in conditions if condition.get("status") == "True"]


def foreign_finalizers(item: Json) -> tuple[str, ...]:
    """The finalizers of a namespace that are not Kubernetes' own."""
    finalizers = [*(item["metadata"].get("finalizers") or ())]
    finalizers += item["spec"].get("finalizers") or ()
    return tuple(name for name in finalizers if name != "kubernetes")


def _reason(item: Json) -> str:
    messages = [condition.get("message", "") for condition in true_conditions(item)]
    if finalizers := foreign_finalizers(item):
        messages.append(f"finalizers of its own: {', '.join(finalizers)}")
    return "; ".join(messages) or "its content is being deleted"


def decisions(names: Mapping[str, str], required: Iterable[str]) -> list[Decision]:
    """A decision for each namespace that a run needs and that is being deleted: who must act.

    + names: as of `terminating`; required: namespaces that a run makes objects in
    """
    return [
        Decision(
            what=f"Namespace {name} is being deleted, and no run can make anything in it "
            f"({names[name]})",
            why="whoever its finalizers name has to act: the controller that they belong to, or, "
            f"where that is gone for good, a person who takes them off (`kubectl get namespace "
            f"{name} -o yaml` names the objects); then a run makes it again",
        )
        for name in dict.fromkeys(required)
        if name in names
    ]
