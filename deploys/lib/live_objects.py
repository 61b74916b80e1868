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


def record_objects(objects: Iterable[Object], live: Mapping[str, Object] | None = None) -> None:
    """Record what applying these objects changes, and what that restarts.

    + live: those that exist, as `label` names them; None: they are read, where a plan shows them
    """
    items = list(objects)
    known = live is None
    if live is None and host.state.is_executing:
        changes.record(*[Change(subject=label(item), new="applied") for item in items])
        return
    if live is None:
        found = read(LiveObjects, references=[_reference(item) for item in items])
        live = {label(item): item for item in found}
    for item in items:
        changes.record(*_items(live.get(label(item)), item, known))


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
