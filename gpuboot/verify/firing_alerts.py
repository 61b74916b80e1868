"""Alerts that fire while a cluster is proven: beside its proof, since they see what it does not.

A proof asks how every GPU is now; alerts see trends and what passed. Only critical ones that ask
for a GPU's repair decide a link of the chain (gpuboot/verify/checks/health_checks.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# the others (a heartbeat, an inhibitor) fire on purpose
SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, kw_only=True)
class FiringAlert:
    """An alert that fires, as Prometheus' /api/v1/alerts has it.

    + severity: of `SEVERITIES`
    + action: what the GPU needs (`gpu_action`), or ""
    + node, gpu_uuid: from its labels; "" where it has none
    + part: the MIG instance of that GPU, e.g. `1g.10gb 3`, or ""
    + since: when it became active, RFC 3339
    + runbook: address or path of its page, or ""
    """

    name: str
    severity: str
    action: str
    node: str
    gpu_uuid: str
    part: str
    since: str
    summary: str
    description: str
    runbook: str


def firing_alerts(alerts: Any) -> tuple[FiringAlert, ...]:
    """The alerts that fire, the gravest first, of the list in Prometheus' answer.

    Raises KeyError for what is no such list.
    """
    firing = {
        _parse_alert(item) for item in alerts if item["state"] == "firing" and _is_reported(item)
    }
    return tuple(
        sorted(
            firing,
            key=lambda alert: (
                SEVERITIES.index(alert.severity),
                alert.node,
                alert.gpu_uuid,
                alert.name,
                alert.part,
            ),
        )
    )


def _is_reported(item: Mapping[str, Any]) -> bool:
    return item["labels"].get("severity") in SEVERITIES


def _parse_alert(item: Mapping[str, Any]) -> FiringAlert:
    labels, notes = item["labels"], item.get("annotations", {})
    part = f"{labels.get('GPU_I_PROFILE', '')} {labels.get('GPU_I_ID', '')}".strip()
    return FiringAlert(
        name=labels["alertname"],
        severity=labels["severity"],
        action=labels.get("gpu_action", ""),
        node=labels.get("node", ""),
        gpu_uuid=labels.get("UUID", ""),
        part=part,
        since=item.get("activeAt", ""),
        summary=notes.get("summary", ""),
        description=notes.get("description", ""),
        runbook=notes.get("runbook_url", ""),
    )
