"""What changed Kubernetes objects restart, as far as their kinds tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gpuboot.plan.differences import value_changes
from gpuboot.plan.model import Change, Effect

Object = Mapping[str, Any]

_ROLLED = ("DaemonSet", "Deployment", "StatefulSet")
# Parts of the spec that the Prometheus operator writes into Prometheus' configuration alone, which
# is reloaded (prometheus-operator, pkg/prometheus/promcfg.go); others are arguments of its pods.
_RELOADED = (
    "additionalScrapeConfigs",
    "evaluationInterval",
    "externalLabels",
    "podMonitor",
    "probe",
    "query",
    "remoteWrite",
    "rule",
    "scrapeConfig",
    "scrapeInterval",
    "scrapeTimeout",
    "serviceMonitor",
)
_OPERATED = {
    "Prometheus": "no queries, alerts or scrapes while the only pod restarts",
    "Alertmanager": "no notifications while the only pod restarts",
}
# ClusterPolicy's part -> the DaemonSet that the GPU Operator makes of it (gpu-operator v26.7.0,
# assets/*/*daemonset.yaml), and what running GPU pods notice
_OPERANDS = {
    "dcgmExporter": ("nvidia-dcgm-exporter", "a gap in GPU metrics; GPU pods run on"),
    "devicePlugin": (
        "nvidia-device-plugin-daemonset",
        "no new GPU pods are admitted meanwhile; those that run go on",
    ),
    "gfd": ("gpu-feature-discovery", "GPU pods run on"),
    "migManager": ("nvidia-mig-manager", "GPU pods run on while the MIG layout stays"),
    "validator": ("nvidia-operator-validator", "GPU pods run on"),
}
_ALL_OPERANDS = "all DaemonSets of the GPU Operator"


def label(item: Object) -> str:
    """Kind, namespace and name of an object, as plans name it."""
    meta = item.get("metadata") or {}
    namespace = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{item.get('kind', '')} {namespace}{meta.get('name', '')}"


def release_effects(old: str, new: str, namespace: str) -> list[Effect]:
    """What restarts when a release's manifest changes: the YAML of before, and that of afterwards.

    + namespace: of the release

    Raises yaml.YAMLError.
    """
    was, becomes = _documents(old), _documents(new)
    before = {label(item): item for item in _parsed(was - becomes)}
    after = {label(item): item for item in _parsed(becomes - was)}
    all_effects = [
        effect
        for name, item in sorted(after.items())
        if name in before
        for effect in effects(before[name], item, namespace)
    ]
    # of what the GPU Operator rolls out because of its policy, the policy tells more
    first = {(item.kind, item.target): item for item in reversed(all_effects)}
    return [item for item in dict.fromkeys(all_effects) if first[item.kind, item.target] == item]


def _documents(text: str) -> set[str]:
    # parsing what is the same would take most of the time: dashboards are long
    return {part.removeprefix("---").strip() for part in text.split("\n---")} - {""}


def _parsed(texts: set[str]) -> list[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [yaml.load(text, Loader=loader) for text in texts]
    return [item for item in documents if isinstance(item, dict)]


def effects(old: Object, new: Object, namespace: str = "") -> list[Effect]:
    """What restarts when one object becomes another.

    + namespace: where the object is when it does not say so
    """
    return list(dict.fromkeys(_effects(old, new, namespace)))


def _effects(old: Object, new: Object, namespace: str) -> Iterator[Effect]:
    kind, was, spec = new.get("kind"), old.get("spec") or {}, new.get("spec") or {}
    meta = {"namespace": namespace, **(new.get("metadata") or {})}
    target = label({"kind": kind, "metadata": meta})
    if kind in _ROLLED and _differs(was, spec, "template"):
        yield Effect(kind="restart", target=target, note=_pace(str(kind), spec))
    elif kind in _OPERATED:
        changed = [key for key in {*was, *spec} if _differs(was, spec, key)]
        if any(not key.startswith(_RELOADED) for key in changed):
            replicas = int(spec.get("replicas", 1))
            note = _OPERATED[kind] if replicas < 2 else "one replica after another"
            yield Effect(kind="restart", target=target, note=note)
        elif changed:
            yield Effect(kind="reload", target=target, note="nothing restarts")
    elif kind == "ClusterPolicy":
        yield from _operands(was, spec, namespace)


def _operands(old: Object, new: Object, namespace: str) -> Iterator[Effect]:
    changed = [key for key in sorted({*old, *new}) if _differs(old, new, key)]
    for key in changed:
        if key in _OPERANDS:
            name, note = _OPERANDS[key]
            yield Effect(kind="restart", target=f"DaemonSet {namespace}/{name}", note=note)
    if "daemonsets" in changed:
        yield Effect(kind="restart", target=_ALL_OPERANDS, note="GPU pods run on")
    for key in set(changed) & {"driver", "toolkit"}:
        yield Effect(kind="restart", target=f"the GPU Operator's {key}", gpu_pods=None)


def _pace(kind: str, spec: Object) -> str:
    if kind == "DaemonSet":
        return "its pods are replaced node by node"
    return "its only pod is replaced" if spec.get("replicas", 1) == 1 else "pod by pod"


def _differs(old: Object, new: Object, key: str) -> bool:
    return bool(old.get(key) != new.get(key))


def object_changes(old: Object | None, new: Object) -> list[Change]:
    """Each field of an object that differs. + old: as the API server has it; None: not there

    Fields that only the API server has are passed over: it fills in what nobody has written.
    """
    if old is None:
        return [Change(subject=label(new), new="created")]
    if new.get("kind") == "Secret":
        return [Change(subject=label(new), field="data", old="", new="", hidden=True)]
    return [
        item
        for item in value_changes(label(new), _configured_fields(old), _configured_fields(new))
        if item.new is not None or item.diff or _is_gone(item)
    ]


def _configured_fields(item: Object) -> dict[str, Any]:
    meta = item.get("metadata") or {}
    marks = {
        key: {
            name: text for name, text in (meta.get(key) or {}).items() if "gpuboot.io" not in name
        }
        for key in ("labels", "annotations")
    }
    remaining = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    return {**remaining, **{key: value for key, value in marks.items() if value}}


def _is_gone(change: Change) -> bool:
    """Whether a missing value was written by us: members of data and named members of lists."""
    return change.field.startswith("data.") or change.field.endswith("]")
