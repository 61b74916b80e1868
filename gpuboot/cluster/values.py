"""Chart values as nested maps: laying one over another, and telling where two differ."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Values = dict[str, Any]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """`over` laid on `base`, maps key by key; a list or a scalar replaces what was there."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        are_mappings = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if are_mappings else value  # type: ignore[arg-type]
    return merged


def keeping(values: Mapping[str, Any], live: Mapping[str, Any], path: Sequence[str]) -> Values:
    """Values with the entries that a live release has at a path beside their own.

    Nothing is kept where the values have nothing at that path.
    """
    if not path:
        return {**live, **values}
    name, *remaining = path
    own_value, live_value = values.get(name), live.get(name)
    if not isinstance(own_value, Mapping) or not isinstance(live_value, Mapping):
        return dict(values)
    return {**values, name: keeping(own_value, live_value, remaining)}


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted paths whose values differ, sorted; paths only, since values may be secret."""
    paths = []
    for key in sorted({*old, *new}):
        path = f"{prefix}{key}"
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            paths += changed_keys(before, after, f"{path}.")
        elif key not in old or key not in new or _json(before) != _json(after):
            paths.append(path)
    return paths


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
