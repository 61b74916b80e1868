"""Objects that gpuboot keeps in the cluster: labelled as its own, compared before they are applied.

Only kinds of `KINDS`, so that what is no longer wanted can be found by its label and removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from gpuboot.kubernetes.api_answers import parse_answers

# libyaml's where PyYAML was built with it: ten times as fast
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]

OWNER_LABEL = "app.kubernetes.io/managed-by"
OWNER = "gpuboot"
# digest of what was applied: of one object, or of a whole manifest
DIGEST = "gpuboot.io/sha256"
# Kind -> its name for kubectl. The second half exists only once the Prometheus operator's
# definitions are in the cluster.
BUILT_IN = {"ConfigMap": "configmaps", "NetworkPolicy": "networkpolicies.networking.k8s.io"}
OPERATORS = {
    "PrometheusRule": "prometheusrules.monitoring.coreos.com",
    "ServiceMonitor": "servicemonitors.monitoring.coreos.com",
}
KINDS = {**BUILT_IN, **OPERATORS}
# Where the API server lists them, all namespaces together.
PATHS = {
    "ConfigMap": "/api/v1/configmaps",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/networkpolicies",
    "PrometheusRule": "/apis/monitoring.coreos.com/v1/prometheusrules",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/servicemonitors",
}
# The same, of those with our label.
OWNED_PATHS = {
    kind: f"{path}?labelSelector={OWNER_LABEL.replace('/', '%2F')}%3D{OWNER}"
    for kind, path in PATHS.items()
}


@dataclass(frozen=True)
class Owned:
    """An object in the cluster that carries our label. digest: of what was applied; "" for none."""

    kind: str
    namespace: str
    name: str
    digest: str


@dataclass(frozen=True)
class OwnedObjects:
    """All of them. error: why there is no answer; "" when there is one."""

    error: str = ""
    objects: tuple[Owned, ...] = ()


@dataclass(frozen=True)
class Difference:
    """What it takes to come from what is there to what is wanted."""

    apply: tuple[Object, ...]
    delete: tuple[Owned, ...]

    @property
    def nothing(self) -> bool:
        return not self.apply and not self.delete


def key(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, namespace and name of an object. Raises ValueError where one of them is missing."""
    try:
        return item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]
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
    whole = {**item, "metadata": {**meta, "labels": labels}}
    annotations = {**meta.get("annotations", {}), DIGEST: json_digest(whole)}
    return {**whole, "metadata": {**whole["metadata"], "annotations": annotations}}


def digests(objects: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """Key -> digest of objects as `as_owned` makes them."""
    return {key(item): item["metadata"]["annotations"][DIGEST] for item in map(as_owned, objects)}


def difference(
    expected: Sequence[Mapping[str, Any]], existing: Iterable[Owned], namespaces: Collection[str]
) -> Difference:
    """What to apply, and what to remove.

    + expected: objects without our label and digest
    + namespaces: where objects of ours that are not expected are removed

    Raises ValueError for an object that is given twice.
    """
    objects = {key(item): as_owned(item) for item in expected}
    if len(objects) != len(expected):
        names = sorted("/".join(key(item)) for item in expected)
        raise ValueError(f"an object is given twice: {', '.join(names)}")
    present = {(item.kind, item.namespace, item.name): item for item in existing}
    return Difference(
        tuple(
            item
            for name, item in objects.items()
            if name not in present
            or present[name].digest != item["metadata"]["annotations"][DIGEST]
        ),
        tuple(
            item
            for name, item in sorted(present.items())
            if name not in objects and item.namespace in namespaces
        ),
    )


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
    return yaml.safe_dump_all(objects, sort_keys=False), digest


def _annotate(metadata: dict[str, Any], digest: str) -> None:
    metadata.setdefault("annotations", {})[DIGEST] = digest


def runtime_class(name: str, handler: str) -> str:
    """The RuntimeClass by whose name pods ask for a runtime handler of containerd."""
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return json.dumps({**kind, "metadata": {"name": name}, "handler": handler})


def parse_owned(lines: Iterable[str]) -> OwnedObjects:
    """What the fact of `OWNED_PATHS` printed. Raises `FactOutputError`."""
    optional = [OWNED_PATHS[kind] for kind in OPERATORS]
    answers = parse_answers(lines, list(OWNED_PATHS.values()), optional)
    objects = tuple(
        Owned(kind, meta["namespace"], meta["name"], meta.get("annotations", {}).get(DIGEST, ""))
        for kind, path in OWNED_PATHS.items()
        for meta in (item["metadata"] for item in answers.items(path))
    )
    return OwnedObjects(answers.error, objects)
