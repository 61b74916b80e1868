"""The values of the three Helm charts, as plain dicts made from settings and version lock.

Sources of the keys: values.yaml of gpu-operator v26.7.0, kube-prometheus-stack 88.5.3 and
dcgm-exporter 4.8.4; tests check every key against the charts' own lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from gpuboot.nodes import Node
from gpuboot.settings import Exporter, Settings
from gpuboot.telemetry import collectors_csv
from gpuboot.values import Values, merge
from gpuboot.versions import Lock

GRAFANA_SECRET = "gpuboot-grafana-admin"
COLLECTORS_MAP = "gpuboot-dcgm-metrics"
PLUGIN_MAP = "gpuboot-device-plugin"
GPUS_LABEL = "gpuboot.io/gpus"
PUBLISHERS = {
    "nvidia": "https://helm.ngc.nvidia.com/nvidia",
    "prometheus-community": "https://prometheus-community.github.io/helm-charts",
    "dcgm-exporter": "https://nvidia.github.io/dcgm-exporter/helm-charts",
}
# The GPU taint that NVIDIA's own operands tolerate, and the control plane's.
_TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {
        "key": "node-role.kubernetes.io/control-plane",
        "operator": "Exists",
        "effect": "NoSchedule",
    },
]
# Series name their node by the pod's node name (the exporter's own label is `Hostname` before
# 4.8.3 and `hostname` from it), and the target's labels make room for the exporter's, which name
# the workload: honorLabels alone would charge idle GPUs to the exporter's own pod.
_RELABELINGS: list[Values] = [
    {
        "action": "replace",
        "sourceLabels": ["__meta_kubernetes_pod_node_name"],
        "targetLabel": target,
    }
    for target in ("node", "instance")
] + [{"action": "labeldrop", "regex": "pod|namespace|container|service|endpoint"}]


def repository(name: str, settings: Settings) -> str:
    """Base URL of a chart repository: the site's mirror, or its publisher.

    + name: `repository` of a chart in the version lock

    Raises ValueError for a repository nobody publishes.
    """
    mirrors: Mapping[str, str] = {str(key): url for key, url in settings.mirrors.charts.items()}
    try:
        return mirrors.get(name) or PUBLISHERS[name]
    except KeyError:
        known = ", ".join(sorted(PUBLISHERS))
        raise ValueError(f"unknown chart repository {name}; known are {known}") from None


def collectors(exporter: Exporter) -> str:
    """The exporter's collectors CSV: the site's own file where it names one, else ours.

    Raises OSError when the named file cannot be read, `telemetry.UnknownField` for a bad name.
    """
    if exporter.collectors_file:
        return Path(exporter.collectors_file).expanduser().read_text()
    return collectors_csv(exporter.counters)


def operator_values(settings: Settings, lock: Lock) -> Values:
    """Values of gpu-operator for driver and toolkit that stand on the host already."""
    operated = settings.exporter.kind == "operator"
    values: Values = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "nfd": {"enabled": True},
        "cdi": {"enabled": True},
        "mig": {"strategy": settings.gpu_operator.mig_strategy},
        "daemonsets": {"tolerations": _TOLERATIONS},
        "dcgmExporter": _operated_exporter(settings, lock) if operated else _no_exporter(),
    }
    if settings.gpu_operator.time_slices > 1:
        values["devicePlugin"] = {"config": _time_slicing(settings)}
    return merge(values, settings.gpu_operator.values)


def _no_exporter() -> Values:
    return {"enabled": False, "serviceMonitor": {"enabled": False}}


def _operated_exporter(settings: Settings, lock: Lock) -> Values:
    exporter = settings.exporter
    values: Values = {
        "enabled": True,
        "version": lock.images.dcgm_exporter,
        "env": _exporter_env(settings),
        "config": {"name": COLLECTORS_MAP, "create": True, "data": collectors(exporter)},
        "serviceMonitor": _service_monitor(settings),
    }
    if exporter.arguments:
        values["args"] = list(exporter.arguments)
    return values


def _exporter_env(settings: Settings) -> list[Values]:
    exporter = settings.exporter
    env = {"DCGM_EXPORTER_INTERVAL": str(exporter.interval_ms)}
    if exporter.remote_engine:
        env["DCGM_REMOTE_HOSTENGINE_INFO"] = exporter.remote_engine
    if exporter.devices:
        env["DCGM_EXPORTER_DEVICES_STR"] = exporter.devices
    if settings.gpu_operator.time_slices > 1:
        # Without it only one of the pods that share a GPU is named (dcgm-exporter, app.go).
        env["KUBERNETES_VIRTUAL_GPUS"] = "true"
    return [{"name": name, "value": value} for name, value in env.items()]


def _service_monitor(settings: Settings) -> Values:
    exporter = settings.exporter
    return {
        "enabled": settings.monitoring.enabled,
        "interval": exporter.scrape_interval,
        "scrapeTimeout": exporter.scrape_timeout,
        "honorLabels": False,
        "additionalLabels": {"release": settings.monitoring.release},
        "relabelings": _RELABELINGS,
    }


def _time_slicing(settings: Settings) -> Values:
    operator = settings.gpu_operator
    shared = {"name": "nvidia.com/gpu", "replicas": operator.time_slices}
    config = {
        "version": "v1",
        "flags": {"migStrategy": operator.mig_strategy},
        "sharing": {"timeSlicing": {"renameByDefault": False, "resources": [shared]}},
    }
    data = {"default": yaml.safe_dump(config, sort_keys=False)}
    return {"name": PLUGIN_MAP, "create": True, "default": "default", "data": data}


def exporter_values(settings: Settings, lock: Lock) -> Values:
    """Values of the stand-alone dcgm-exporter chart.

    With `customMetrics` the chart puts our collectors at /etc/dcgm-exporter/default-counters.csv.
    """
    values: Values = {
        "image": {"tag": lock.images.dcgm_exporter},
        "arguments": [
            "-f",
            "/etc/dcgm-exporter/default-counters.csv",
            *settings.exporter.arguments,
        ],
        "customMetrics": collectors(settings.exporter),
        "extraEnv": _exporter_env(settings),
        "serviceMonitor": {**_service_monitor(settings), "metricRelabelings": []},
        "tolerations": _TOLERATIONS,
        # Our own label, since NVIDIA's nvidia.com/gpu.present needs the operator.
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _on_gpus()}
        },
    }
    if settings.runtime.mode == "runtimeclass":
        values["runtimeClassName"] = "nvidia"
    if settings.runtime.mode == "cdi":
        # No nvidia runtime to inject the driver: the host's own CDI spec does.
        values["podAnnotations"] = {"cdi.k8s.io/gpuboot": "nvidia.com/gpu=all"}
    return values


def _on_gpus() -> Values:
    expression = {"key": GPUS_LABEL, "operator": "Exists"}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


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


def expected_gpus(nodes: tuple[Node, ...], settings: Settings) -> dict[str, int]:
    """Allocatable `nvidia.com/gpu` that each GPU node must show, by Kubernetes node name.

    MIG slices have other resource names under the `mixed` strategy and other counts under
    `single`, so this holds for whole GPUs.
    """
    slices = settings.gpu_operator.time_slices
    return {node.name: node.gpus * slices for node in nodes if node.gpus}


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


def operands(settings: Settings, lock: Lock, nodes: int) -> dict[str, int]:
    """The GPU Operator's own Deployment and the DaemonSets it makes, with their numbers of nodes.

    + nodes: how many nodes have GPUs
    """
    values = operator_values(settings, lock)
    made = {
        "nvidia-operator-validator": True,
        "nvidia-device-plugin-daemonset": values.get("devicePlugin", {}).get("enabled", True),
        "gpu-feature-discovery": values.get("gfd", {}).get("enabled", True),
        "nvidia-dcgm-exporter": values["dcgmExporter"]["enabled"],
    }
    wanted = [name for name, enabled in made.items() if enabled and nodes]
    return {"gpu-operator": 1} | dict.fromkeys(wanted, nodes)
