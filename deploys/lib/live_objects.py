"""What applying objects changes in the cluster, field by field. On the leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyinfra.context import host

from deploys.facts.details import LiveObjects
from deploys.lib import changes
from deploys.lib.answers import read
from gpuboot.plan import Change, Item
from gpuboot.plan.workloads import effects, label, object_changes

Object = Mapping[str, Any]


def record_objects(objects: Iterable[Object], existing: Iterable[str] | None = None) -> None:
    """Record what applying these objects changes, and what that restarts.

    + existing: of the objects those that exist, as `label` names them; None: not known
    """
    items = list(objects)
    known = {label(item) for item in items} if existing is None else set(existing)
    asked = [item for item in items if label(item) in known]
    if host.state.is_executing:
        for item in items:
            old = "present" if label(item) in known and existing is not None else None
            changes.record(Change(subject=label(item), old=old, new="applied"))
        return
    references = [_reference(item) for item in asked]
    found = read(LiveObjects, references=references) if asked else []
    live = {label(item): item for item in found}
    for item in items:
        changes.record(*_items(live.get(label(item)), item, label(item) in known))


def _items(old: Object | None, new: Object, known: bool) -> list[Item]:
    if old is None and known:
        return [Change(subject=label(new), new="applied")]
    found: list[Item] = list(object_changes(old, new))
    if not found:
        # what differs is nothing that the API server keeps, or marks of ours alone
        found.append(Change(subject=label(new), field="marks", old="another", new="of gpuboot"))
    return found if old is None else [*found, *effects(old, new)]


def _reference(item: Object) -> tuple[str, str, str, str]:
    meta = item["metadata"]
    return item["apiVersion"], item["kind"], meta.get("namespace", ""), meta["name"]
