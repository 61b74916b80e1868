"""Make a stand-in chart's `values.schema.json` from the lists of upstream's value keys in `keys/`.

Helm drops a value whose key no template reads, without a word; so a stand-in chart that accepted
anything would prove nothing about the values the deploys write. The schema closes every map that
upstream's values file spells out and leaves open those that Kubernetes or the user defines.

    python -m lab.charts.schema gpu-operator > values.schema.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEYS = Path(__file__).parent / "keys"

#: Key lists of each chart: where in the values they apply, and their file. Later files win.
SOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    "gpu-operator": (
        ("node-feature-discovery", "node-feature-discovery-0.19.0"),
        ("", "gpu-operator-v26.7.0"),
        ("", "gpu-operator-extra"),
    ),
    # without a stand-in: nothing installs it in the lab
    "fluent-bit": (("", "fluent-bit-0.58.1"),),
    "dcgm-exporter": (("", "dcgm-exporter-4.8.2"), ("", "dcgm-exporter-extra")),
    "kube-prometheus-stack": (
        ("grafana", "grafana-12.11.1"),
        ("kube-state-metrics", "kube-state-metrics"),
        ("prometheus-node-exporter", "prometheus-node-exporter"),
        ("", "kube-prometheus-stack-88.5.3"),
        ("", "kube-prometheus-stack-extra"),
    ),
}

#: Maps that are open wherever they stand, although upstream's default has entries: what may be
#: in them is the Kubernetes API's or the user's affair.
OPEN_NAMES = frozenset(
    {
        "affinity", "annotations", "containerSecurityContext", "env", "labels", "maxAllowed",
        "minAllowed", "networkPolicy", "nodeSelector", "podAnnotations", "podDisruptionBudget",
        "podLabels", "podSecurityContext", "resources", "securityContext", "updateStrategy",
        "verticalPodAutoscaler",
    }
)  # fmt: skip
#: Maps that are open at one path only.
OPEN_PATHS = frozenset({"grafana/grafana.ini", "kubeApiServer/serviceMonitor/selector"})
#: Key names that hold a dot, which the lists' paths do not escape.
DOTTED = ("grafana.ini",)

_TYPES: dict[str, tuple[str, ...]] = {
    "bool": ("boolean",),
    "int": ("integer",),
    "str": ("string",),
    "list": ("array",),
    "map": ("object",),
    "map (open)": ("object",),
    "null (any)": (),
    "any": (),
}

Schema = dict[str, Any]


def json_schema(chart: str) -> Schema:
    """The JSON schema (draft 7) of `chart`'s values.

    Raises KeyError for a chart without key lists and ValueError for a malformed line in one.
    """
    root: Schema = _closed()
    for prefix, name in SOURCES[chart]:
        for path, kind in _read(KEYS / f"{name}.tsv"):
            segments = [prefix, *path] if prefix else path
            _insert(root, segments, _leaf(kind), replace=name.endswith("-extra"))
    root["properties"].setdefault("global", {"type": "object"})
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": chart, **root}


def _closed() -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _leaf(kind: str) -> Schema:
    names = [name for part in kind.split("|") for name in _TYPES[part]]
    if not names:
        return {}
    return {"type": names[0] if len(names) == 1 else names}


def _read(path: Path) -> list[tuple[list[str], str]]:
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        key, tab, kind = line.partition("\t")
        if not tab or any(part not in _TYPES for part in kind.split("|")):
            raise ValueError(f"{path.name}:{number}: not 'key<TAB>type': {line!r}")
        entries.append((_split(key), kind))
    return entries


def _split(key: str) -> list[str]:
    for name in DOTTED:
        key = key.replace(name, name.replace(".", "\0"))
    return [segment.replace("\0", ".") for segment in key.split(".")]


def _insert(root: Schema, path: list[str], leaf: Schema, *, replace: bool) -> None:
    """Put `leaf` at `path`, cutting the path at the first open map on it."""
    node = root
    for depth, name in enumerate(path):
        if not node.get("properties") and node.get("additionalProperties") is not False:
            return  # inside a map that another list left open
        children = node["properties"]
        last = depth == len(path) - 1
        opened = name in OPEN_NAMES or "/".join(path[: depth + 1]) in OPEN_PATHS
        if opened and not last:
            children[name] = {"type": "object"}
            return
        if last:
            children[name] = leaf if replace else _merge(children.get(name), leaf)
            return
        child = children.get(name)
        if child is None or child == {}:  # "null (any)" in a sub-chart, spelt out by its parent
            child = children[name] = _closed()
        node = child


def _merge(old: Schema | None, new: Schema) -> Schema:
    """The union of what two lists allow; a map spelt out by one of them stays closed."""
    if old is None or old == new:
        return new
    if "properties" in old:
        return old
    if not old or not new:
        return {}
    types = [
        t for s in (old, new) for t in ([s["type"]] if isinstance(s["type"], str) else s["type"])
    ]
    unique = list(dict.fromkeys(types))
    return {"type": unique[0] if len(unique) == 1 else unique}


if __name__ == "__main__":
    json.dump(json_schema(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
