"""All alerts together, with what a site wants different, and whether that makes sense."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.settings.base import seconds
from gpuboot.monitoring.rules import (
    alerts_backup,
    alerts_cluster,
    alerts_dcgm,
    alerts_exporter,
    alerts_health,
    alerts_interconnect,
    alerts_memory,
    alerts_repair,
    alerts_scrapes,
    alerts_services,
    alerts_support,
    alerts_workload,
    alerts_xid,
)
from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.requirements import IN_CLUSTER, Requirement, available_sources

# Labels that the rules themselves give an alert, or that tell whose it is.
RESERVED = {"alertname", "severity", "component", "gpu_action", "cluster", "node", "namespace"}
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Rules look back over five minutes, and a rate takes two samples.
_SLOWEST_SCRAPE_S = 120


def all_alerts(settings: Settings) -> dict[str, list[Alert]]:
    """Every alert by its group, before overrides; also those that the settings leave out."""
    return {
        "xid": alerts_xid.alerts(settings),
        "memory": alerts_memory.ALERTS,
        "health": alerts_health.ALERTS,
        "dcgm": alerts_dcgm.ALERTS,
        "interconnect": alerts_interconnect.ALERTS,
        "exporter": [*alerts_exporter.ALERTS, *alerts_scrapes.ALERTS],
        "workload": alerts_workload.alerts(settings),
        "cluster": [
            *alerts_cluster.ALERTS,
            *alerts_repair.ALERTS,
            *alerts_backup.alerts(settings),
            *alerts_services.ALERTS,
            *alerts_support.ALERTS,
        ],
    }


def loaded_alerts(settings: Settings, site: Requirement = IN_CLUSTER) -> dict[str, list[Alert]]:
    """The alerts that are to be loaded, by group, with the site's overrides in them.

    + site: what there is beside exporters and Prometheus
    """
    if not settings.alerts.enabled:
        return {}
    by_group = {}
    sources = available_sources(site, settings)
    for group, alerts in all_alerts(settings).items():
        loaded = [
            _overridden(alert, settings)
            for alert in alerts
            if alert.requires in sources and _is_enabled(alert, settings)
        ]
        if loaded:
            by_group[group] = loaded
    return by_group


def _is_enabled(alert: Alert, settings: Settings) -> bool:
    override = settings.alerts.rules.get(alert.name)
    return alert.enabled and (override is None or override.enabled)


def _overridden(alert: Alert, settings: Settings) -> Alert:
    override = settings.alerts.rules.get(alert.name)
    if override is None:
        return alert
    return replace(
        alert,
        severity=override.severity or alert.severity,
        hold_for=override.hold_for or alert.hold_for,
        threshold=alert.threshold if override.threshold is None else override.threshold,
    )


def validate(settings: Settings) -> list[Problem]:
    """What is wrong with the settings of alerts; empty when all is well."""
    alerts_by_name = {
        alert.name: alert for group in all_alerts(settings).values() for alert in group
    }
    problems = []
    for name, override in settings.alerts.rules.items():
        if name not in alerts_by_name:
            near = difflib.get_close_matches(name, alerts_by_name, n=1, cutoff=0.5)
            remedy = f"did you mean {near[0]}?" if near else "docs/runbooks lists every alert"
            problems.append(Problem("", f"alerts.rules: there is no alert {name}", remedy))
        elif override.threshold is not None and alerts_by_name[name].threshold is None:
            problems.append(
                Problem("", f"alerts.rules.{name}.threshold: it compares with no number of ours",
                        "leave the threshold out")
            )  # fmt: skip
    for label in settings.alerts.labels:
        if label in RESERVED or not _LABEL.fullmatch(label):
            problems.append(
                Problem("", f"alerts.labels: {label!r} cannot be a label of every alert",
                        f"a name like `team`, and none of {', '.join(sorted(RESERVED))}")
            )  # fmt: skip
    if seconds(settings.exporter.scrape_interval) > _SLOWEST_SCRAPE_S:
        problems.append(
            Problem("", f"exporter.scrape_interval: {settings.exporter.scrape_interval} is too "
                    "slow for rules that look back over 5 minutes",
                    f"at most {_SLOWEST_SCRAPE_S // 60}m")
        )  # fmt: skip
    return problems
