"""The compose project of a Docker host: exporters on GPU hosts, and all else on the monitor.

One project for each host, made from the same rules, dashboards and routes as in a cluster.
"""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.docker.compose import compose_prometheus, compose_services, grafana
from gpuboot.docker.compose.compose_files import (
    COMPOSE,
    FOLDER,
    NAME,
    File,
    Project,
    Reload,
    without_variables,
)
from gpuboot.docker.compose.compose_services import GRAFANA, NOBODY_UID
from gpuboot.monitoring import alerting, dashboards, rules
from gpuboot.telemetry.collectors import collectors

__all__ = ["COMPOSE", "NAME", "File", "Project", "project"]

_HEADER = "# Written by gpuboot; changes are lost in its next run\n"


class _Plain(yaml.SafeDumper):
    """Writes YAML without anchors: what stands at two places is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_TAKES_FILES_BY: dict[str, Reload] = {
    "dcgm-exporter": "restart",
    "prometheus": "SIGHUP",
    "alertmanager": "SIGHUP",
    "grafana": "restart",
}


def project(
    node: Node, nodes: Sequence[Node], settings: Settings, lock: Lock, nvswitches: bool = False
) -> Project:
    """All that one host has to have.

    + nodes: every Docker host of the inventory, with addresses; Prometheus runs on the monitor
    + nvswitches: a timer of this host leaves their errors for node-exporter

    Raises `SettingsError` for secrets that cannot be read, OSError for a collectors file that
    cannot, `telemetry.UnknownField` for an unknown counter.
    """
    definitions = {
        "node-exporter": compose_services.node_exporter(node, settings, lock, nvswitches)
    }
    files: list[File] = []
    if node.gpus:
        definitions["dcgm-exporter"] = compose_services.dcgm_exporter(node, settings, lock)
        text = collectors(settings.exporter)
        files.append(File("exporter/collectors.csv", text, service="dcgm-exporter"))
    if node.monitor:
        definitions["prometheus"] = compose_services.prometheus_server(settings, lock)
        definitions["alertmanager"] = compose_services.alertmanager(settings, lock)
        files += _prometheus(nodes, settings) + _alertmanager(settings)
        if settings.monitoring.grafana:
            definitions["grafana"] = compose_services.grafana_server(settings, lock)
            files += _grafana(settings)
    compose = _yaml({"name": NAME, "services": without_variables(definitions)})
    users = {"prometheus": NOBODY_UID, "alertmanager": NOBODY_UID, "grafana": GRAFANA}
    data_folders = ("data/prometheus", "data/alertmanager", "data/grafana")
    read = ("secrets/alertmanager", "secrets/grafana")
    folders = {path: path.rpartition("/")[2] for path in (*data_folders, *read)}
    return Project(
        FOLDER,
        tuple(definitions),
        (File(COMPOSE, compose), *files),
        {path: users[service] for path, service in folders.items() if service in definitions},
        _TAKES_FILES_BY,
    )


def _prometheus(nodes: Sequence[Node], settings: Settings) -> list[File]:
    groups = [
        compose_prometheus.monitoring_rules(),
        *rules.groups(settings, nodes, rules.ON_DOCKER_HOSTS),
    ]
    return [
        File(
            "prometheus/prometheus.yml",
            _yaml(compose_prometheus.config(settings, nodes)),
            service="prometheus",
        ),
        File("prometheus/rules/gpuboot.yml", _yaml({"groups": groups}), service="prometheus"),
        *(
            File(
                f"prometheus/targets/{job}/gpuboot.json", json.dumps(groups_of_job, indent=1) + "\n"
            )
            for job, groups_of_job in compose_prometheus.targets(settings, nodes).items()
        ),
    ]


def _alertmanager(settings: Settings) -> list[File]:
    config = _yaml(alerting.config(settings, compose_services.SECRETS))
    texts = {"alertmanager.yml": config, **alerting.templates()}
    return [
        File(f"alertmanager/{name}", text, service="alertmanager") for name, text in texts.items()
    ] + [
        File(
            f"secrets/alertmanager/{key}",
            value.get_secret_value(),
            "600",
            NOBODY_UID,
            service="alertmanager",
        )
        for key, value in alerting.secrets(settings).items()
    ]


def _grafana(settings: Settings) -> list[File]:
    password = settings.grafana_password
    urls = (
        compose_services.local_url(settings, "prometheus"),
        compose_services.local_url(settings, "alertmanager"),
    )
    return [
        *(
            File(f"grafana/{path}", _yaml(content), service="grafana")
            for path, content in grafana.provisioning(*urls).items()
        ),
        # Grafana looks for changes of these by itself
        *(
            File(f"grafana/dashboards/json/{uid}.json", json.dumps(dashboard) + "\n")
            for uid, dashboard in dashboards.dashboards(settings, rules.ON_DOCKER_HOSTS).items()
        ),
        File(
            "secrets/grafana/admin-password",
            password.get_secret_value() if password else None,
            "600",
            GRAFANA,
        ),
    ]


def _yaml(content: dict[str, Any]) -> str:
    text = yaml.dump(content, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
    return f"{_HEADER}{text}"
