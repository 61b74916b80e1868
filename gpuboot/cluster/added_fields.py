"""Fields that somebody has added to an object, beside those that its maker sets.

The API server notes which program has set each field (metadata.managedFields). What the makers of
an object and Kubernetes' own controllers have set is right; what any other program has set, such as
`kubectl edit`, and the maker does not set, is in force although nobody asks for it: another node
selector, a variable of a container, `paused`. Labels, annotations and status are everybody's.
Source: kubernetes.io, Server-Side Apply; sigs.k8s.io/structured-merge-diff, fieldpath.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

# programs that set fields of the objects that a cluster of gpuboot consists of
_MAKERS = frozenset(
    (
        *("gpuboot", "helm", "Helm", "kubeadm", "gpu-operator", "PrometheusOperator", "operator"),
        *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"),
        *("cloud-controller-manager", "clusterrole-aggregation-controller"),
        *("kubectl-rollout", "kubectl-label", "kubectl-annotate", "kubectl-autoscale"),
    )
)
_PARTS = ("spec", "data", "binaryData", "rules", "subjects", "webhooks", "groups")

# what the API server itself puts into members of lists that are a whole
_DEFAULTED = ("apiGroup", "protocol", "scope")
Step = str | int | dict[str, Any]
Path = tuple[Step, ...]


def added_fields(desired: Mapping[str, Any], live: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """Path and value of each field of `live` that another program has added to `desired`."""
    paths: dict[str, Path] = {}
    entries = live["metadata"].get("managedFields") or ()
    for entry in entries:
        if entry.get("manager") not in _MAKERS and not entry.get("subresource"):
            paths |= {text(path): path for path in _owned(entry.get("fieldsV1") or {})}
    additions: list[tuple[Path, Any]] = []
    for path in paths.values():
        if path[0] not in _PARTS or any(path[: len(outer)] == outer for outer, _ in additions):
            continue
        value, expected = _value(live, path), _value(desired, path)
        if expected is None:
            added = [(path, value)]
        elif isinstance(expected, Mapping) and isinstance(value, Mapping):
            # set as a whole, as a node selector is; `otherwise` compares what is expected of it
            added = [((*path, key), member) for key, member in value.items() if key not in expected]
        elif isinstance(expected, list) and isinstance(value, list):
            added = list(_added_to_members(expected, value, path))
        else:
            added = []
        additions += [
            (place, member) for place, member in added if member not in (None, "", [], {}, False)
        ]
    return additions


def _added_to_members(
    desired: list[Any], live: list[Any], path: Path
) -> Iterator[tuple[Path, Any]]:
    """Fields of a list's members, where the list is set as a whole and has as many as expected."""
    if len(desired) == len(live):
        for number, (member, actual) in enumerate(zip(desired, live, strict=True)):
            if isinstance(member, Mapping) and isinstance(actual, Mapping):
                names = actual.keys() - member.keys() - {*_DEFAULTED}
                yield from (((*path, number, name), actual[name]) for name in sorted(names))


def without(live: Mapping[str, Any], paths: list[Path]) -> dict[str, Any]:
    """The object without these fields, and without what only the API server writes."""
    remaining: dict[str, Any] = copy.deepcopy({k: v for k, v in live.items() if k != "status"})
    remaining["metadata"].pop("managedFields", None)
    for path in paths:
        holder = _value(remaining, path[:-1])
        if isinstance(last := path[-1], dict):
            holder.remove(_member(holder, last))
        elif holder is not None:
            holder.pop(last, None)
    return remaining


def text(path: Path) -> str:
    """A path as people write it: `spec.containers[web].env[DEBUG]`."""
    rendered = ""
    for step in path:
        name = "/".join(map(str, step.values())) if isinstance(step, dict) else ""
        name = str(step) if isinstance(step, int) else name
        rendered += f"[{name}]" if name else f".{step}" if rendered else str(step)
    return rendered


def _owned(fields: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Paths of managed fields, outer fields before inner ones."""
    for name, inner in fields.items():
        kind, _, key = name.partition(":")
        if name == "." or kind not in ("f", "k"):
            if name == "." and path and isinstance(path[-1], dict):
                yield path  # a member of a list, as a whole
            continue
        step: Step = json.loads(key) if kind == "k" else key
        if not inner:
            yield (*path, step)
        yield from _owned(inner, (*path, step))


def _value(item: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, dict):
            item = _member(item, step) if isinstance(item, list) else None
        elif isinstance(step, int):
            item = item[step] if isinstance(item, list) and step < len(item) else None
        else:
            item = item.get(step) if isinstance(item, Mapping) else None
        if item is None:
            return None
    return item


def _member(items: list[Any], keys: Mapping[str, Any]) -> Any:
    defaults = {"protocol": "TCP"}
    return next(
        (
            item
            for item in items
            if all(item.get(key, defaults.get(key)) == value for key, value in keys.items())
        ),
        None,
    )
