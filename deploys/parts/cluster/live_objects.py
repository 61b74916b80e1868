"""What applying objects changes in the cluster, field by field. On the leader."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyinfra.context import host

from deploys.engine import changes
from deploys.engine.answers import read
from deploys.parts.cluster.objects_fact import LiveObjects
from gpuboot.plan import Change, Item
from gpuboot.plan.restarted_workloads import effects, label, object_changes

Object = Mapping[str, Any]


def record_objects(objects: Iterable[Object], live: Mapping[str, Object] | None = None) -> None:
    """Record what applying these objects changes, and what that restarts.

    + live: those that exist, as `label` names them; None: they are read, where a plan shows them
    """
    items = list(objects)
    is_complete = live is None
    if live is None and host.state.is_executing:
        changes.record(*[Change(subject=label(item), new="applied") for item in items])
        return
    if live is None:
        live_objects = read(LiveObjects, references=[_reference(item) for item in items])
        live = {label(item): item for item in live_objects}
    for item in items:
        changes.record(*_items(live.get(label(item)), item, is_complete))


def _items(old: Object | None, new: Object, is_complete: bool) -> list[Item]:
    if old is None and is_complete:
        return [Change(subject=label(new), new="applied")]
    changed_items: list[Item] = list(object_changes(old, new))
    if not changed_items:
        # what differs is nothing that the API server keeps, or marks of ours alone
        changed_items.append(
            Change(subject=label(new), field="marks", old="another", new="of gpuboot")
        )
    return changed_items if old is None else [*changed_items, *effects(old, new)]


def _reference(item: Object) -> tuple[str, str, str, str]:
    meta = item["metadata"]
    return item["apiVersion"], item["kind"], meta.get("namespace", ""), meta["name"]
