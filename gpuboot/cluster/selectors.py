"""Label selectors of Kubernetes: what they take, and how kubectl writes them.

Source: kubernetes.io, Labels and Selectors, and its reference of LabelSelector.
"""

from collections.abc import Mapping
from typing import Any

_CHECKS = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
}
_FORMATS = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector of Kubernetes takes these labels. None takes nothing, {} everything."""
    if selector is None:
        return False
    labels_match = all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    )
    return labels_match and all(
        _CHECKS[expression["operator"]](
            labels.get(expression["key"]), expression.get("values") or ()
        )
        for expression in selector.get("matchExpressions") or ()
    )


def format_selector(selector: Mapping[str, Any]) -> str:
    """A selector as `kubectl get --selector` takes it; "" for one that takes everything."""
    equal = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    return ",".join(
        equal
        + [
            _FORMATS[expression["operator"]].format(
                key=expression["key"], values=",".join(expression.get("values") or ())
            )
            for expression in selector.get("matchExpressions") or ()
        ]
    )
