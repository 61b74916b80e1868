"""Panels about XID errors, each code with the class that rules act on."""

from __future__ import annotations

from gpuboot.config.settings import Alerts
from gpuboot.config.settings.alerting import XidClass
from gpuboot.monitoring.dashboards.spec import POD_LABELS, Column, Panel, State, graph
from gpuboot.monitoring.dashboards.variables import ON_GPU
from gpuboot.monitoring.rules import xid

_ERRORS = "DCGM_EXP_XID_ERRORS_TOTAL"
_BY = "node, gpu, xid, namespace, pod"
_COLOURS = ("red", "red", "dark-orange", "orange", "blue", "text", "yellow")
_CLASSES = tuple(
    State(number, kind, colour)
    for number, (kind, colour) in enumerate(zip(xid.CLASSES, _COLOURS, strict=True))
)
_OVER_TIME = graph(
    "XID errors over time",
    "Errors since the exporter started; a step is an error, a fall a restart of it.",
    (
        f"max by (node, gpu, xid) ({_ERRORS}{{{ON_GPU}}})",
        "{{node}} GPU {{gpu}} XID {{xid}}",
    ),
    size=(10, 6),
    range=(0, None),
)


def xid_panels(alerts: Alerts) -> tuple[Panel, ...]:
    """XID errors by code and over time.

    + alerts: its `xid` overrides classes of XID codes
    """
    by_code = Panel(
        "table",
        "XID errors by code",
        "Errors since the exporter started. Class: what the code asks for; application errors "
        "(13, 31, …) are the program's, not the GPU's. A code without a class is unknown.",
        columns=(
            Column("Node", label="node"),
            Column("GPU", label="gpu", link="gpu-profile"),
            Column("XID", label="xid"),
            Column("Namespace", label="namespace", requires=POD_LABELS),
            Column("Pod", label="pod", requires=POD_LABELS),
            Column("Errors", f"max by ({_BY}) ({_ERRORS}{{{ON_GPU}}})"),
            Column("Class", _class_expr(alerts), states=_CLASSES),
        ),
        size=(14, 6),
        sort="Errors",
    )
    return by_code, _OVER_TIME


def _class_expr(alerts: Alerts) -> str:
    """PromQL whose value is the number of the class of each code that was counted."""
    by_class: dict[XidClass, list[int]] = {}
    for code, kind in xid.classes(alerts.xid).items():
        by_class.setdefault(kind, []).append(code)
    return " or ".join(
        f'0 * max by ({_BY}) ({_ERRORS}{{{ON_GPU},xid=~"{"|".join(map(str, by_class[kind]))}"}})'
        f" + {number}"
        for number, kind in enumerate(xid.CLASSES)
        if kind in by_class
    )
