"""What Grafana finds at its start: where Prometheus is, and our dashboards."""

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
                _source("prometheus", prometheus, isDefault=True),
                _source("alertmanager", alertmanager, jsonData={"implementation": "prometheus"}),
            ],
        },
        "dashboards/gpuboot.yaml": {"apiVersion": 1, "providers": [_PROVIDER]},
    }


_PROVIDER = {
    "name": "gpuboot",
    "folder": "GPU",
    "type": "file",
    "disableDeletion": True,
    "allowUiUpdates": False,
    "updateIntervalSeconds": 30,
    "options": {"path": f"{FOLDER}/dashboards/json"},
}


def _source(kind: str, url: str, **options: object) -> Object:
    name = kind.capitalize()
    return {"name": name, "uid": kind, "type": kind, "access": "proxy", "url": url, **options}
