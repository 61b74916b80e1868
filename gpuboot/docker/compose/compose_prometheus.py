"""prometheus.yml, its targets and its rules, for a Prometheus that finds hosts by files."""

from collections.abc import Sequence
from typing import Any

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.docker.compose.compose_services import PROMETHEUS, local_address

Object = dict[str, Any]

EXPORTER, HOST = "dcgm-exporter", "node-exporter"
# `node` as in a cluster: from the targets file, else the host part of the address; and `instance`
# is the node, so that series outlive a change of port.
_RELABELINGS: list[Object] = [
    {
        "source_labels": ["node", "__address__"],
        "regex": r";\[?([^\]]+?)\]?(?::\d+)?",
        "target_label": "node",
    },
    {"source_labels": ["node"], "target_label": "instance"},
]


def config(settings: Settings, nodes: Sequence[Node]) -> Object:
    """prometheus.yml.

    + nodes: the inventory's hosts; Prometheus runs on the monitor
    """
    exporter = settings.exporter
    labels = {"node": next(node.name for node in nodes if node.monitor)}
    return {
        "global": {
            "scrape_interval": settings.monitoring.scrape_interval,
            "evaluation_interval": settings.monitoring.scrape_interval,
            "external_labels": {"cluster": settings.cluster.name},
        },
        "rule_files": [f"{PROMETHEUS}/rules/*.yml"],
        "alerting": {
            "alertmanagers": [
                {"static_configs": [{"targets": [local_address(settings, "alertmanager")]}]}
            ]
        },
        "scrape_configs": [
            {
                "job_name": name,
                "static_configs": [{"targets": [local_address(settings, name)], "labels": labels}],
                "relabel_configs": _RELABELINGS[1:],
            }
            for name in ("prometheus", "alertmanager")
        ]
        + [
            _job(EXPORTER, exporter.scrape_interval, exporter.scrape_timeout),
            _job(HOST),
            *(_job(name) for name in sorted(settings.standalone.targets.keys() - {EXPORTER, HOST})),
        ],
    }


def _job(name: str, interval: str = "", timeout: str = "") -> Object:
    job: Object = {"job_name": name}
    if interval:
        job |= {"scrape_interval": interval, "scrape_timeout": timeout}
    return job | {
        "file_sd_configs": [
            {"files": [f"{PROMETHEUS}/targets/{name}/*.{kind}" for kind in ("json", "yml", "yaml")]}
        ],
        "relabel_configs": _RELABELINGS,
    }


def targets(settings: Settings, nodes: Sequence[Node]) -> dict[str, list[Object]]:
    """Target groups by job: the inventory's hosts with their names, and the site's own.

    + nodes: the inventory's hosts
    """
    ports = {
        EXPORTER: settings.standalone.ports["exporter"],
        HOST: settings.standalone.ports["node_exporter"],
    }
    groups_by_job: dict[str, list[Object]] = {
        job: [
            {"targets": [f"{node.address}:{port}"], "labels": {"node": node.name}}
            for node in nodes
            if job == HOST or node.gpus
        ]
        for job, port in ports.items()
    }
    for job, addresses in settings.standalone.targets.items():
        groups_by_job.setdefault(job, []).extend({"targets": [address]} for address in addresses)
    return groups_by_job


# name, expression, for how long, severity, summary, description
_RULES = (
    ("Watchdog", "vector(1)", "0s", "none", "Alerting works", "Fires all the time."),
    (
        "TargetDown",
        f'up{{job!="{EXPORTER}"}} == 0',
        "10m",
        "warning",
        "{{ $labels.job }} of {{ $labels.node }} does not answer",
        "Prometheus has read nothing from {{ $labels.instance }} for 10 minutes: see "
        "`docker compose -p gpuboot ps` there, and firewalls on the way.",
    ),
    (
        "ConfigurationRefused",
        "prometheus_config_last_reload_successful == 0\n"
        "or alertmanager_config_last_reload_successful == 0",
        "5m",
        "warning",
        "{{ $labels.job }} runs with an older configuration than its file",
        "It refused the new one; its log says why: `docker compose -p gpuboot logs`.",
    ),
    (
        "NotificationsFail",
        "rate(alertmanager_notifications_failed_total[5m]) > 0",
        "10m",
        "critical",
        "Notifications by {{ $labels.integration }} do not get through",
        "Nobody may hear of alerts: `docker compose -p gpuboot logs alertmanager`.",
    ),
)


def monitoring_rules() -> Object:
    """What kube-prometheus-stack brings along in a cluster, as far as alerting hangs on it.

    Watchdog always fires: it is the heartbeat that a dead-man's switch outside waits for.
    """
    return {
        "name": "gpuboot-standalone",
        "rules": [
            {
                "alert": name,
                "expr": expr,
                "for": hold,
                "labels": {"severity": severity, "component": "cluster", "gpu_action": "none"},
                "annotations": {"summary": summary, "description": description},
            }
            for name, expr, hold, severity, summary, description in _RULES
        ],
    }
