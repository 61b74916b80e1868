"""Values of kube-prometheus-stack, and the workloads it makes."""

from __future__ import annotations

from gpuboot.settings import Settings
from gpuboot.values import Values, merge

GRAFANA_SECRET = "gpuboot-grafana-admin"


def monitoring_values(settings: Settings) -> Values:
    """Values of kube-prometheus-stack: everything selected, kubeadm's targets reachable or off."""
    monitoring = settings.monitoring
    open_selectors = {
        f"{kind}SelectorNilUsesHelmValues": False
        for kind in ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")
    }
    values: Values = {
        "prometheus": {
            "prometheusSpec": {
                **open_selectors,
                "scrapeInterval": monitoring.scrape_interval,
                "retention": monitoring.retention,
            },
            "service": _service(monitoring.prometheus_node_port),
        },
        "grafana": _grafana(settings),
        **_control_plane_targets(monitoring.control_plane_targets),
    }
    return merge(values, monitoring.values)


def _service(node_port: int | None) -> Values:
    if node_port is None:
        return {"type": "ClusterIP"}
    return {"type": "NodePort", "nodePort": node_port}


def _grafana(settings: Settings) -> Values:
    if not settings.monitoring.grafana:
        return {"enabled": False}
    return {
        "enabled": True,
        "admin": {
            "existingSecret": GRAFANA_SECRET,
            "userKey": "admin-user",
            "passwordKey": "admin-password",
        },
        "service": _service(settings.monitoring.grafana_node_port),
        "sidecar": {"dashboards": {"enabled": True, "folderAnnotation": "grafana_folder"}},
    }


def _control_plane_targets(wanted: bool) -> Values:
    """kubeadm's control plane, as `templates/kubernetes/kubeadm-init.yaml.j2` makes it listen.

    The serving certificates of controller manager and scheduler are self-signed by themselves.
    """
    if not wanted:
        names = ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy")
        return {name: {"enabled": False} for name in names}
    https = {"https": True, "insecureSkipVerify": True}
    return {
        "kubeControllerManager": {
            "enabled": True,
            "service": {"port": 10257, "targetPort": 10257},
            "serviceMonitor": https,
        },
        "kubeScheduler": {
            "enabled": True,
            "service": {"port": 10259, "targetPort": 10259},
            "serviceMonitor": https,
        },
        "kubeEtcd": {"enabled": True, "service": {"port": 2381, "targetPort": 2381}},
        "kubeProxy": {"enabled": True, "service": {"port": 10249, "targetPort": 10249}},
    }


def fullname(release: str) -> str:
    """How kube-prometheus-stack names its objects (its template `fullname`)."""
    chart = "kube-prometheus-stack"
    return (release if chart in release else f"{release}-{chart}")[:26].rstrip("-")


def monitoring_workloads(settings: Settings) -> list[str]:
    """What the Prometheus operator makes or is, and must be there before monitoring runs."""
    full = fullname(settings.monitoring.release)
    names = [f"{full}-operator", f"prometheus-{full}-prometheus"]
    if monitoring_values(settings).get("alertmanager", {}).get("enabled", True):
        names.append(f"alertmanager-{full}-alertmanager")
    return names
