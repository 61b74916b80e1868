"""Panels about our own alerts, which several dashboards show."""

from __future__ import annotations

from gpuboot.monitoring.dashboards.spec import (
    ORANGE_ABOVE_NONE,
    POD_LABELS,
    RED_ABOVE_NONE,
    Column,
    Panel,
    stat,
)
from gpuboot.monitoring.dashboards.variables import alerts_expr

ON_ANY_NODE = 'node=~"($node)|"'  # alerts about the cluster as a whole name no node
ALERTS = alerts_expr(ON_ANY_NODE)
BY_ALERT = "alertname, severity, gpu_action, node, gpu, namespace, pod"
REPAIR = ("drain", "reset", "reboot", "replace")


def firing(severity: str) -> str:
    """How many of our alerts of this severity fire."""
    matchers = f'{ON_ANY_NODE},severity="{severity}"'
    return f"count({alerts_expr(matchers)}) or vector(0)"


def needing(*actions: str) -> str:
    """How many GPUs have an alert that asks for one of these actions."""
    matchers = f'{ON_ANY_NODE},UUID!="",gpu_action=~"{"|".join(actions)}"'
    return f"count(max by (node, UUID) ({alerts_expr(matchers)})) or vector(0)"


ALERT_COUNTS = (
    stat(
        "Critical alerts",
        "Our own alerts of severity critical that fire now.",
        firing("critical"),
        steps=RED_ABOVE_NONE,
    ),
    stat(
        "Warnings",
        "Our own alerts of severity warning that fire now.",
        firing("warning"),
        steps=ORANGE_ABOVE_NONE,
    ),
)


def alerts_table(size: tuple[int, int] = (14, 8)) -> Panel:
    """What fires now, and for how long."""
    fires = f"max by ({BY_ALERT}) ((time() - ALERTS_FOR_STATE) and ignoring (alertstate) {ALERTS})"
    return Panel(
        "table",
        "Firing alerts",
        "Our own alerts that fire now. Active since: how long the condition has held. Empty is "
        "good. Action: what the GPU needs. A click on the alert opens its runbook, where "
        "alerts.runbooks says where they are published.",
        columns=(
            Column("Alert", label="alertname"),
            Column("Severity", label="severity"),
            Column("Action", label="gpu_action"),
            Column("Node", label="node", link="gpu-node"),
            Column("GPU", label="gpu", link="gpu-profile"),
            Column("Namespace", label="namespace", requires=POD_LABELS),
            Column("Pod", label="pod", requires=POD_LABELS),
            Column("Active for", fires, unit="s"),
        ),
        size=size,
        sort="Active for",
    )
