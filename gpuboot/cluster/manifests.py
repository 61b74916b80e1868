"""Objects that gpuboot keeps in the cluster: labelled as its own, compared before they are applied.

Only kinds of `KINDS`, so that what is no longer wanted can be found by its label and removed.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from gpuboot.cluster import managed_objects
from gpuboot.cluster.set_fields import field_differences

# libyaml's where PyYAML was built with it: ten times as fast
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
YAML_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Object = dict[str, Any]

OWNER_LABEL = "app.kubernetes.io/managed-by"
OWNER = "gpuboot"
# digest of what was applied: of one object, or of a whole manifest
DIGEST = "gpuboot.io/sha256"
# Kind -> its name for kubectl. The second half exists only once the Prometheus operator's
# definitions are in the cluster.
BUILT_IN = {
    "ConfigMap": "configmaps",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
    "PriorityClass": "priorityclasses.scheduling.k8s.io",
    "ResourceQuota": "resourcequotas",
}
# of which nothing can be changed: they are made anew
_FIXED = ("PriorityClass",)
OPERATORS = {
    "PrometheusRule": "prometheusrules.monitoring.coreos.com",
    "ServiceMonitor": "servicemonitors.monitoring.coreos.com",
}
KINDS = {**BUILT_IN, **OPERATORS}
# Where the API server lists them, all namespaces together.
PATHS = {kind: managed_objects.KINDS[kind].path for kind in KINDS}
_ABSENT = object()


@dataclass(frozen=True)
class Replaced:
    """An object of ours that somebody has added something to.

    + item: what is put in its place, with the labels and annotations of others
    + live: as it is; + added: paths of what was added
    """

    item: Object
    live: Object
    added: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What it takes to come from what is there to what is wanted.

    + remake: those that exist otherwise and cannot be changed
    """

    apply: tuple[Object, ...]
    delete: tuple[Object, ...]
    replace: tuple[Replaced, ...] = ()
    remake: tuple[Object, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.apply or self.delete or self.replace or self.remake)


def key(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, namespace ("" for kinds that have none) and name of an object.

    Raises ValueError where one of them is missing.
    """
    try:
        kind, meta = item["kind"], item["metadata"]
        definition = managed_objects.KINDS.get(kind)
        return (
            kind,
            "" if definition and not definition.namespaced else meta["namespace"],
            meta["name"],
        )
    except KeyError as error:
        raise ValueError(f"an object without {error}: {json.dumps(item)[:120]}") from None


def as_owned(item: Mapping[str, Any]) -> Object:
    """The object with our label, and with the digest of everything else in it.

    Raises ValueError for a kind that could not be found again.
    """
    kind, _, name = key(item)
    if kind not in KINDS:
        raise ValueError(f"{kind} {name}: only {', '.join(KINDS)} are kept this way")
    meta = item["metadata"]
    labels = {**meta.get("labels", {}), OWNER_LABEL: OWNER}
    labelled = {**item, "metadata": {**meta, "labels": labels}}
    annotations = {**meta.get("annotations", {}), DIGEST: json_digest(labelled)}
    return {**labelled, "metadata": {**labelled["metadata"], "annotations": annotations}}


def digests(objects: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Key -> digest of objects as `as_owned` makes them."""
    return {key(item): item["metadata"]["annotations"][DIGEST] for item in map(as_owned, objects)}


def difference(
    expected: Sequence[Mapping[str, Any]],
    existing: Iterable[Object],
    namespaces: Collection[str] | None,
    kinds: Collection[str] = tuple(KINDS),
) -> Difference:
    """What to apply, what to put in the place of what is there, and what to remove.

    + expected: objects without our label and digest
    + existing: objects as the API server has them; others than ours are passed over
    + namespaces: where objects of ours that are not expected are removed; None: everywhere
    + kinds: those that are looked at

    Raises ValueError for an object that is given twice.
    """
    objects = {key(item): as_owned(item) for item in expected}
    if len(objects) != len(expected):
        names = sorted("/".join(key(item)) for item in expected)
        raise ValueError(f"an object is given twice: {', '.join(names)}")
    owned = (item for item in existing if item["kind"] in kinds and _is_ours(item))
    present = {key(item): item for item in owned}
    added = {
        name: additions(item, present[name]) for name, item in objects.items() if name in present
    }
    differing = [
        item
        for name, item in objects.items()
        if name not in present or (_changed(item, present[name]) and not added[name])
    ]
    fixed = [item for item in differing if item["kind"] in _FIXED and key(item) in present]
    return Difference(
        apply=tuple(item for item in differing if item not in fixed),
        delete=_obsolete(present, objects, namespaces),
        replace=tuple(
            Replaced(_in_place_of(present[name], objects[name]), present[name], added_paths)
            for name, added_paths in added.items()
            if added_paths
        ),
        remake=tuple(fixed),
    )


def _obsolete(
    present: Mapping[tuple[str, str, str], Object],
    objects: Mapping[tuple[str, str, str], Object],
    namespaces: Collection[str] | None,
) -> tuple[Object, ...]:
    """The objects in the cluster that gpuboot made and that are not wanted any more."""
    return tuple(
        item
        for name, item in sorted(present.items(), key=lambda pair: pair[0])
        if name not in objects and (namespaces is None or name[1] in namespaces)
    )


def _is_ours(item: Mapping[str, Any]) -> bool:
    return bool((item["metadata"].get("labels") or {}).get(OWNER_LABEL) == OWNER)


def _changed(desired: Object, live: Object) -> bool:
    """Whether what we apply is otherwise in the cluster, or anything of it."""
    return any(True for _ in field_differences(desired, live))


def additions(desired: Mapping[str, Any], live: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of what others have added to an object that is ours as a whole.

    What the API server fills in belongs to nobody in the object's `managedFields`; keys of data it
    never fills in.
    """
    paths = [
        f"{part}.{name}"
        for part in ("data", "binaryData")
        for name in (live.get(part) or {}).keys() - (desired.get(part) or {}).keys()
    ]
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") != OWNER and not entry.get("subresource"):
            fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
            paths += _unwanted(fields, desired.get("spec") or {}, "spec")
    return tuple(sorted({*paths}))


def _unwanted(fields: Mapping[str, Any], desired: Any, path: str) -> Iterator[str]:
    """Paths of managed fields (`managedFields[].fieldsV1`) that an object does not set."""
    for step, inner in fields.items():
        sign, _, name = step.partition(":")
        inside = _member(desired, sign, name)
        if inside is _ABSENT:
            yield f"{path}.{name}" if sign == "f" else f"{path}[{name}]"
        elif inner:
            yield from _unwanted(inner, inside, f"{path}.{name}" if sign == "f" else path)


def _member(desired: Any, sign: str, name: str) -> Any:
    """What a step of managed fields leads to: a field, a member by its keys, or by its value."""
    if sign == "f" and isinstance(desired, Mapping):
        return desired.get(name, _ABSENT)
    if sign == "v" and isinstance(desired, list):
        return desired if json.loads(name) in desired else _ABSENT
    if sign == "k" and isinstance(desired, list):
        keys = json.loads(name).items()
        matches = (
            item for item in desired if all(item.get(key, text) == text for key, text in keys)
        )
        return next(matches, _ABSENT)
    return desired


def _in_place_of(live: Mapping[str, Any], desired: Object) -> Object:
    """The object as we apply it, with the marks that others have put on what is there."""
    marks = {
        mark: {**(live["metadata"].get(mark) or {}), **desired["metadata"].get(mark, {})}
        for mark in ("labels", "annotations")
    }
    return {**desired, "metadata": {**desired["metadata"], **marks}}


def manifest(objects: Iterable[Mapping[str, Any]]) -> str:
    """The objects as one document that kubectl takes."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def json_digest(value: Any) -> str:
    """SHA-256 of what JSON can hold, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def with_digest(manifest: str) -> tuple[str, str]:
    """The manifest with its digest as an annotation of every object and pod template.

    A pod template's annotation restarts its pods when only a ConfigMap changed.
    Returns the manifest and the digest.
    """
    objects = [item for item in yaml.load_all(manifest, Loader=YAML_LOADER) if item]
    digest = json_digest(objects)
    for item in objects:
        _annotate(item["metadata"], digest)
        template = item.get("spec", {}).get("template")
        if template:
            _annotate(template.setdefault("metadata", {}), digest)
    return yaml.dump_all(objects, Dumper=YAML_DUMPER, sort_keys=False), digest


def _annotate(metadata: dict[str, Any], digest: str) -> None:
    metadata.setdefault("annotations", {})[DIGEST] = digest


def runtime_class(name: str, handler: str) -> str:
    """The RuntimeClass by whose name pods ask for a runtime handler of containerd."""
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return json.dumps({**kind, "metadata": {"name": name}, "handler": handler})
