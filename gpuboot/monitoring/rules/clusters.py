"""Rules that keep clusters apart where several are in one Prometheus, such as a central one.

A cluster's own Prometheus has no label `cluster` on its series: it is an external label, on alerts
and on what goes to remote stores. Where series have it, nodes of one name are different nodes.
"""

from __future__ import annotations

import re

_LISTS = re.compile(r"\b(by|on) \(([^()]*)\)")
_UNGROUPED = re.compile(r"(?<![\w:])(sum|max|min|avg|count|group)\(")
_ABSENT = re.compile(r"(?<![\w:])absent\((\w+(?:\{[^{}]*\})?)\)")


def kept_apart(expr: str) -> str:
    """The expression, with every aggregation and comparison by cluster as well.

    + expr: as rules are written, for one cluster: `by (…)`, `on (…)`, or over everything
    """
    expr = _ABSENT.sub(r'(absent(\1) or group(kube_node_info{cluster!=""}) unless on () \1)', expr)
    expr = _UNGROUPED.sub(r"\1 by () (", expr)
    return _LISTS.sub(
        lambda match: f"{match[1]} ({', '.join(filter(None, ('cluster', match[2])))})", expr
    )
