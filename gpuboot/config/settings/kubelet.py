"""`cluster.kubelet` against upstream's KubeletConfiguration: a kubelet with an unknown or mistyped
field does not start, and kubeadm passes both through."""

import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gpuboot.config.problems import Problem
from gpuboot.config.support import Source
from gpuboot.config.tables import read_table

# Go's time.ParseDuration
_DURATION = re.compile(r"0|([-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_int, "a whole number"),
    "float": (lambda value: _is_int(value) or isinstance(value, float), "a number"),
    "text": (lambda value: isinstance(value, str), "text"),
    "duration": (
        lambda value: isinstance(value, str) and bool(_DURATION.fullmatch(value)),
        'a duration, e.g. "1m30s"',
    ),
    "dict": (lambda value: isinstance(value, dict), "a dict"),
}


def problems(fields: Mapping[str, Any], minor: str) -> list[Problem]:
    """What a kubelet would refuse.

    + fields: `settings.cluster.kubelet`
    + minor: of Kubernetes, e.g. `1.36`; where the table is of another one, names that it lacks pass
    """
    table = _table()
    field_kinds: Mapping[str, str] = table["fields"]
    problems = []
    for name, value in fields.items():
        if name in field_kinds:
            if problem := _type_problem(field_kinds[name], value):
                remedy = "see upstream's KubeletConfiguration (kubelet.config.k8s.io/v1beta1)"
                problems.append(Problem("", f"cluster.kubelet.{name}: {problem}", remedy))
        elif minor == table["kubernetes"]:
            near = difflib.get_close_matches(name, field_kinds, n=1)
            remedy = f"did you mean {near[0]}?" if near else "take it out: the kubelet refuses it"
            cause = f"cluster.kubelet.{name}: Kubernetes {minor} has no such kubelet field"
            problems.append(Problem("", cause, remedy))
    return problems


def source() -> Source:
    """Where the table of fields was read, and when."""
    return Source(_table()["as_of"], _table()["source"])


@cache
def _table() -> dict[str, Any]:
    return read_table("config/settings/kubelet.toml")


def _type_problem(kind: str, value: Any) -> str:
    """Why the value is none of this kind; "" when it is."""
    outer, _, inner = kind.partition(" of ")
    if outer == "list":
        fits, expected = _KINDS[inner]
        right = isinstance(value, (list, tuple)) and all(map(fits, value))
        return "" if right else f"takes a list, each item {expected}"
    fits, expected = _KINDS[outer]
    if not fits(value):
        return f"takes {expected}" + (_describe_value(value) if outer != "dict" else "")
    if inner and not all(map(_KINDS[inner][0], value.values())):
        return f"takes a dict, each value {_KINDS[inner][1]}"
    return ""


def _describe_value(value: Any) -> str:
    return f" (given: {value!r})" if isinstance(value, (str, int, float)) else ""
