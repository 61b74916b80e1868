"""Values of kube-prometheus-stack, node-exporter's among them, and the workloads it makes."""

from __future__ import annotations

import re

from gpuboot.cluster import node_gate, service_scrape
from gpuboot.cluster.backup import METRICS_FOLDER
from gpuboot.cluster.values import Values, merge
from gpuboot.config.settings import Settings
from gpuboot.monitoring.alerting import alertmanager_values
from gpuboot.monitoring.charts import exposure, stack_volumes
from gpuboot.monitoring.charts.remote_write import remote_write

# what kube-prometheus-stack 88.5.3 has there itself: a list in values takes the place of its own
_UPSTREAM = (
    "--collector.filesystem.mount-points-exclude=^/(dev|proc|sys|run/containerd/.+|"
    "var/lib/docker/.+|var/lib/kubelet/.+)($|/)",
    "--collector.filesystem.fs-types-exclude=^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|"
    "devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|"
    "rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|erofs)$",
)


def node_exporter() -> Values:
    """Values of node-exporter, which reads metrics that programs of the host leave in a folder.

    node-exporter's textfile collector reports an error where there is no such folder.
    """
    mount = {
        "name": "textfiles",
        "hostPath": METRICS_FOLDER,
        "mountPath": METRICS_FOLDER,
        "readOnly": True,
        "type": "DirectoryOrCreate",
    }
    return {
        "extraArgs": [*_UPSTREAM, f"--collector.textfile.directory={METRICS_FOLDER}"],
        "extraHostVolumeMounts": [mount],
    }


GRAFANA_SECRET = "gpuboot-grafana-admin"
# the chart's name and its release's, by which the objects of the chart are named, too
STACK = "kube-prometheus-stack"
GRAFANA_NAME = f"{STACK}-grafana"  # of Grafana's Service, Deployment and claim
# Labels of objects that kube-state-metrics shows (`kube_node_labels`, …): none but these.
LABELS = (
    "nodes=[nvidia.com/gpu.present,nvidia.com/gpu.product,gpuboot.io/gpus]",
    "namespaces=[team]",
)


def monitoring_values(settings: Settings) -> Values:
    """Values of kube-prometheus-stack: everything selected, kubeadm's targets reachable or off.

    Secrets are named in them, never held: they are kept in Secrets of our own.
    """
    values = _prometheus(settings)
    for layer in (
        {"alertmanager": _alertmanager(settings)},
        {"grafana": _grafana(settings)},
        {"kube-state-metrics": {"metricLabelsAllowlist": list(LABELS)}},
        {"prometheus-node-exporter": node_exporter()},
        _control_plane_targets(settings.monitoring.control_plane_targets),
        _tolerating(settings.gate.enabled),
        settings.monitoring.values,
    ):
        values = merge(values, layer)
    return values


def _prometheus(settings: Settings) -> Values:
    monitoring = settings.monitoring
    open_selectors = {
        f"{kind}SelectorNilUsesHelmValues": False
        for kind in ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")
    }
    spec: Values = {
        **open_selectors,
        "scrapeInterval": monitoring.scrape_interval,
        # on alerts and in remote stores; the series in this Prometheus do not carry it
        "externalLabels": {"cluster": settings.cluster.name},
        "retention": monitoring.retention,
        **stack_volumes.prometheus(monitoring),
    }
    if monitoring.remote_write:
        spec["remoteWrite"] = remote_write(settings)
    if configs := service_scrape.scrape_configs(settings):
        spec["additionalScrapeConfigs"] = configs
    return merge(
        {"prometheus": {"prometheusSpec": spec}},
        {"prometheus": exposure.values(monitoring, "prometheus")},
    )


def _alertmanager(settings: Settings) -> Values:
    """Values of Alertmanager: how it is kept and reached; its configuration is made elsewhere."""
    monitoring = settings.monitoring
    storage_values = {"alertmanagerSpec": stack_volumes.alertmanager(monitoring)}
    return merge(
        merge(storage_values, exposure.values(monitoring, "alertmanager")),
        alertmanager_values(settings),
    )


def _grafana(settings: Settings) -> Values:
    monitoring = settings.monitoring
    if not monitoring.grafana:
        return {"enabled": False}
    return {
        "enabled": True,
        "admin": {
            "existingSecret": GRAFANA_SECRET,
            "userKey": "admin-user",
            "passwordKey": "admin-password",
        },
        # A dashboard's annotation makes the sidecar put its file into a folder; that the folder is
        # one of Grafana's own too, its provider is told (grafana 12.11.1, _config.tpl:159, 168).
        "sidecar": {
            "dashboards": {
                "enabled": True,
                "folderAnnotation": "grafana_folder",
                "provider": {"foldersFromFilesStructure": True},
            }
        },
        **stack_volumes.grafana(monitoring),
        **exposure.values(monitoring, "grafana"),
    }


def _control_plane_targets(enabled: bool) -> Values:
    """kubeadm's control plane, as `templates/kubernetes/kubeadm-init.yaml.j2` makes it listen.

    The serving certificates of controller manager and scheduler are self-signed by themselves.
    """
    if not enabled:
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


def _tolerating(gate_enabled: bool) -> Values:
    """Tolerations of the monitoring stack for nodes that the gate has closed: maybe all of them.

    node-exporter tolerates every taint by its chart's defaults.
    """
    if not gate_enabled:
        return {}
    tolerations: Values = {"tolerations": [node_gate.TOLERATION]}
    return {
        "prometheus": {"prometheusSpec": tolerations},
        "alertmanager": {"alertmanagerSpec": tolerations},
        "grafana": tolerations,
        "kube-state-metrics": tolerations,
        "prometheusOperator": {**tolerations, "admissionWebhooks": {"patch": tolerations}},
    }


def claim_names() -> list[str]:
    """Names of the claims of Prometheus, Alertmanager and Grafana, as regular expressions."""
    beginnings = (f"prometheus-{STACK}-prometheus-db-", f"alertmanager-{STACK}-alertmanager-db-")
    return [*(f"{re.escape(name)}.+" for name in beginnings), re.escape(GRAFANA_NAME)]


def remade_claims(settings: Settings) -> list[str]:
    """Claims that are made again once they are deleted, as regular expressions of namespace/name.

    The operator's StatefulSets make theirs; Grafana's is made by the next run.
    """
    space = re.escape(settings.monitoring.namespace)
    return [f"{space}/{name}" for name in claim_names()]


def monitoring_workloads(settings: Settings) -> list[str]:
    """What the Prometheus operator makes or is, and must be there before monitoring runs."""
    names = [f"{STACK}-operator", f"prometheus-{STACK}-prometheus"]
    if monitoring_values(settings).get("alertmanager", {}).get("enabled", True):
        names.append(f"alertmanager-{STACK}-alertmanager")
    return names
