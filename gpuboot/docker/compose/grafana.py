"""What Grafana finds at its start: where Prometheus is, and our dashboards."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

FOLDER = "/etc/grafana/provisioning"


def provisioning(prometheus: str, alertmanager: str) -> dict[str, Object]:
    """Grafana's provisioning files, by path below its provisioning folder.

    + prometheus, alertmanager: their URLs
    """
    return {
        "datasources/gpuboot.yaml": {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "Prometheus",
                    "uid": "prometheus",
                    "type": "prometheus",
                    "access": "proxy",
                    "url": prometheus,
                    "isDefault": True,
                },
                {
                    "name": "Alertmanager",
                    "uid": "alertmanager",
                    "type": "alertmanager",
                    "access": "proxy",
                    "url": alertmanager,
                    "jsonData": {"implementation": "prometheus"},
                },
            ],
        },
        "dashboards/gpuboot.yaml": {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "gpuboot",
                    "folder": "GPU",
                    "type": "file",
                    "disableDeletion": True,
                    "allowUiUpdates": False,
                    "updateIntervalSeconds": 30,
                    "options": {"path": f"{FOLDER}/dashboards/json"},
                }
            ],
        },
    }
