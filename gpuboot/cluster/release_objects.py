"""The objects of a Helm release, and where the cluster has them otherwise."""

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import yaml

from gpuboot.cluster import added_fields
from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import KINDS, ManagedObjects, Object, key
from gpuboot.cluster.manifests import OWNER_LABEL, YAML_LOADER
from gpuboot.cluster.set_fields import FieldDifference, field_differences

_KIND = re.compile(r"^kind: *\"?(\w+)", re.MULTILINE)
_TIMES = "tag:yaml.org,2002:timestamp"
# of Kubernetes itself; KEDA; kubernetes-sigs/cluster-proportional-autoscaler, often for CoreDNS
_AUTOSCALER = re.compile("kube-controller-manager|autoscaler|keda")
_MARKS = f"metadata.labels.{OWNER_LABEL}"
# The API groups whose definitions a chart brings: others' monitors are in the GPU Operator's too.
_DEFINED: dict[str, tuple[str, ...]] = {
    "kube-prometheus-stack": ("monitoring.coreos.com/",),
    "gpu-operator": ("nvidia.com/", "nfd.k8s-sigs.io/"),
}
# Of these only whether they are there: a volume grows, and cannot shrink to what its release says.
_GROWING = ("PersistentVolumeClaim",)


class _Loader(YAML_LOADER):  # type: ignore[misc]  # libyaml's, where PyYAML has it
    """Reads what Helm has rendered as Helm does: dates are texts."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMES]
        for first, resolvers in YAML_LOADER.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True)
class Drift:
    """An object that is not as its release has made it.

    + desired: as Helm applies it; + live: as it is, None where it is not there
    + fields: what is otherwise in it
    + applied: what the API server would make of it; None where it did not tell
    + added: paths of fields that others have added, as `added_fields` has them
    """

    desired: Object
    live: Object | None = None
    fields: tuple[FieldDifference, ...] = ()
    applied: Object | None = None
    added: tuple[added_fields.Path, ...] = ()

    @property
    def remade(self) -> bool:
        """Whether it has to be deleted first: whose rights a binding gives never changes."""
        return self.live is not None and any(path.startswith("roleRef") for path, *_ in self.fields)

    @property
    def cleaned(self) -> Object | None:
        """The object without what others have added to it; None where that is nothing."""
        return (
            added_fields.without(self.live, list(self.added)) if self.live and self.added else None
        )


def release_objects(release: Release, name: str, namespace: str) -> list[Object]:
    """What Helm applies for a release: its manifest's objects of `KINDS` and Secrets, with marks.

    + name, namespace: of the release

    Raises yaml.YAMLError.
    """
    marks = {
        "labels": {OWNER_LABEL: "Helm"},
        "annotations": {
            "meta.helm.sh/release-name": name,
            "meta.helm.sh/release-namespace": namespace,
        },
    }
    objects = []
    for item in _documents(yaml.load_all(release.manifest, Loader=_Loader)):
        kind = KINDS.get(item.get("kind", ""))
        secret = item.get("kind") == "Secret"
        if not secret and (kind is None or _group(item) != kind.version.rpartition("/")[0]):
            continue
        meta = item.get("metadata") or {}
        scope = {"namespace": meta.get("namespace") or namespace}
        added = {mark: {**(meta.get(mark) or {}), **texts} for mark, texts in marks.items()}
        meta = {**meta, **(scope if secret or (kind and kind.namespaced) else {}), **added}
        objects.append({**item, "metadata": meta})
    return objects


def _documents(items: Iterable[Any]) -> Iterator[Object]:
    for item in items:
        if isinstance(item, dict) and str(item.get("kind", "")).endswith("List"):
            yield from _documents(item.get("items") or ())
        elif isinstance(item, dict):
            yield item


def _group(item: Mapping[str, Any]) -> str:
    return str(item.get("apiVersion", "")).rpartition("/")[0]


def unknown_kinds(release: Release, managed: ManagedObjects) -> list[str]:
    """Kinds that a release's chart defines and has objects of, and the API server does not know."""
    groups = _DEFINED.get(release.chart, ())
    used = {*managed.unknown} & {*_KIND.findall(release.manifest)}
    return sorted(kind for kind in used if KINDS[kind].version.startswith(groups))


def drifted(desired_objects: Iterable[Object], managed: ManagedObjects) -> list[Drift]:
    """The objects that are not there, or not as they are wanted, as far as texts tell.

    The API server has ways of writing fields that are not known here, so it has to say for itself
    whether anything would change: `confirmed`.
    """
    drifts = []
    live_objects = {key(item): item for item in managed.objects}
    secrets = {(item.namespace, item.name): item.digests for item in managed.secrets}
    for item in desired_objects:
        if item["kind"] == "Secret":
            drifts += _secret(item, secrets)
            continue
        live = live_objects.get(key(item))
        if live is None:
            drifts.append(Drift(item))
            continue
        wished = _running(item, live)
        added = added_fields.added_fields(wished, live)
        if item["kind"] in _GROWING:
            added = []
        fields = [*_fields(wished, live)]
        fields += [(added_fields.text(path), value, None) for path, value in added]
        if fields:
            paths = tuple(path for path, _ in added)
            drifts.append(Drift(wished, live, tuple(fields), added=paths))
    return drifts


def _fields(desired: Object, live: Object) -> Iterator[FieldDifference]:
    for path, now, desired_value in field_differences(_contents(desired), _contents(live)):
        if not (path == "spec.replicas" and autoscaled(live)):
            yield path, now, desired_value


def _contents(item: Object) -> Object:
    """What of an object its maker sets."""
    meta = item["metadata"]
    marks = {mark: meta.get(mark) or {} for mark in ("labels", "annotations")}
    if item["kind"] in _GROWING:
        return {"metadata": marks}
    remaining = {
        name: value for name, value in item.items() if name not in ("apiVersion", "status")
    }
    return {**remaining, "metadata": marks}


def _running(desired: Object, live: Object) -> Object:
    """The object with one replica, where a workload that names no number of pods now has none."""
    spec, now = desired.get("spec") or {}, live.get("spec") or {}
    counted = desired["kind"] in ("Deployment", "StatefulSet")
    if counted and "replicas" not in spec and now.get("replicas") == 0:
        return {**desired, "spec": {**spec, "replicas": 1}}
    return desired


def autoscaled(live: Object) -> bool:
    """Whether an autoscaler has set the number of pods."""
    return any(
        entry.get("subresource") == "scale" and _AUTOSCALER.search(entry.get("manager", ""))
        for entry in live["metadata"].get("managedFields", ())
    )


def _secret(desired: Object, secrets: Mapping[tuple[str, str], Mapping[str, str]]) -> list[Drift]:
    meta = desired["metadata"]
    live_digests = secrets.get((meta["namespace"], meta["name"]))
    if live_digests is None:
        return [Drift(desired)]
    digests = {name: _digest(b64decode(text)) for name, text in _texts(desired, "data").items()}
    digests |= {
        name: _digest(text.encode()) for name, text in _texts(desired, "stringData").items()
    }
    changed = [name for name, digest in digests.items() if live_digests.get(name) != digest]
    fields = tuple((f"data.{name}", "another", "of the release") for name in sorted(changed))
    live = {"kind": "Secret", "metadata": meta}
    return [Drift(desired, live, fields)] if fields else []


def _texts(item: Object, part: str) -> dict[str, str]:
    return {name: str(text or "") for name, text in (item.get(part) or {}).items()}


def _digest(value: bytes) -> str:
    return hashlib.sha256(b64encode(value)).hexdigest()


def confirmed(drifts: Sequence[Drift], applied: Iterable[Object]) -> list[Drift]:
    """The drifts that the API server confirms.

    + applied: what it would make of the wanted objects, as far as it answered; one that it does
      not tell counts as confirmed: to apply it says why
    """
    applied_objects = {key(item): item for item in applied if item.get("kind") in KINDS}
    return [
        drift
        for item in drifts
        if (drift := _confirmed(item, applied_objects.get(key(item.desired))))
    ]


def _confirmed(item: Drift, applied_object: Object | None) -> Drift | None:
    if applied_object is None:
        return item
    if item.live is None:
        # it is there, without the label by which it is looked for
        hidden = bool(applied_object["metadata"].get("resourceVersion"))
        return (
            replace(item, live=applied_object, fields=((_MARKS, None, "Helm"),)) if hidden else item
        )
    is_unchanged = not item.added and _bare(item.live) == _bare(applied_object)
    return None if is_unchanged else replace(item, applied=applied_object)


def _bare(item: Object) -> Object:
    """An object without what the API server notes about it."""
    server_fields = ("managedFields", "resourceVersion", "generation")
    meta = {name: value for name, value in item["metadata"].items() if name not in server_fields}
    remaining = {
        name: value for name, value in item.items() if name not in ("apiVersion", "status")
    }
    return {**remaining, "metadata": meta}
