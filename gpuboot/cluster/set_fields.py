"""Compares the fields that an object sets with those of the object in the cluster.

The API server adds what nobody has set, leaves out what is empty, and writes amounts in its own
way; others add labels, annotations and members of lists that are told apart by a key. None of that
is a difference here. What counts is whether each field that is set is so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuboot.cluster.objects import amount

# dotted path, as it is now (None: not there), as it is set
FieldDifference = tuple[str, Any, Any]

# Lists whose members the API server tells apart by these keys; members that others add stay
# (x-kubernetes-list-map-keys in its OpenAPI document). Other lists are wholes.
_MEMBERS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "env": ("name",),
    "groups": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "resourceClaims": ("name",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
_PORTS = {"containerPort": ("containerPort", "protocol"), "port": ("port", "protocol")}
_DEFAULTS = {"protocol": "TCP", "whenUnsatisfiable": ""}
_AMOUNTS = ("limits", "requests", "hard", "capacity", "overhead", "podFixed")


def field_differences(desired: Any, live: Any, path: str = "") -> Iterator[FieldDifference]:
    """Each field of `desired` that `live` has otherwise, or lacks. Both are JSON values."""
    if desired is None or (_empty(desired) and _empty(live)):
        return
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        amounts = _last(path) in _AMOUNTS
        for name, value in desired.items():
            if not (amounts and _same_amount(value, live.get(name))):
                yield from field_differences(
                    value, live.get(name), f"{path}.{name}" if path else name
                )
    elif isinstance(desired, list) and isinstance(live, list):
        yield from _of_lists(desired, live, path)
    elif not _is_equal(desired, live):
        yield path, live, desired


def _of_lists(desired: list[Any], live: list[Any], path: str) -> Iterator[FieldDifference]:
    if keys := _member_keys(desired, live, path):
        live_by_name = {_name(item, keys): item for item in live}
        for item in desired:
            name = _name(item, keys)
            yield from field_differences(item, live_by_name.get(name), f"{path}[{name[0]}]")
    elif len(desired) == len(live) and all(isinstance(item, Mapping) for item in desired):
        for number, (item, actual) in enumerate(zip(desired, live, strict=True)):
            yield from field_differences(item, actual, f"{path}[{number}]")
    elif any(True for _ in _unlike(desired, live)):
        yield path, live, desired


def _unlike(desired: list[Any], live: list[Any]) -> Iterator[Any]:
    if len(desired) != len(live):
        yield len(live)
    for item, actual in zip(desired, live, strict=False):
        yield from field_differences(item, actual)


def _member_keys(desired: list[Any], live: list[Any], path: str) -> tuple[str, ...]:
    """The keys by which the members of a list are told apart; () where it is a whole."""
    last = _last(path)
    keys = _MEMBERS.get(last, ())
    if last == "ports" and desired:
        # those of a NetworkPolicy are a whole
        first = "containerPort" if "containerPort" in desired[0] else "port"
        keys = _PORTS[first] if first == "containerPort" or path == "spec.ports" else ()
    if not keys:
        return ()
    is_keyed = all(isinstance(item, Mapping) and keys[0] in item for item in [*desired, *live])
    return keys if is_keyed else ()


def _name(item: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(item.get(key, _DEFAULTS.get(key, ""))) for key in keys)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _empty(value: Any) -> bool:
    return value is None or value is False or value in ("", 0, [], {})


def _is_equal(desired: Any, live: Any) -> bool:
    # to Python, True is 1
    return bool(desired == live) and isinstance(desired, bool) is isinstance(live, bool)


def _same_amount(desired: Any, live: Any) -> bool:
    """Whether two amounts are the same: the API server writes 1000m as 1."""
    if desired == live or desired is None or live is None:
        return bool(desired == live)
    try:
        return amount(str(desired)) == amount(str(live))
    except ValueError:
        return False
