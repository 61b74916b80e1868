"""Values that make dcgm-exporter collect, run and be scraped, for either chart that brings it."""

from __future__ import annotations

from gpuboot.settings import Settings
from gpuboot.telemetry import collectors
from gpuboot.values import Values
from gpuboot.versions import Lock

GPUS_LABEL = "gpuboot.io/gpus"
# The GPU taint that NVIDIA's own operands tolerate, and the control plane's.
TOLERATIONS = [
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
        "extraEnv": environment(settings),
        "serviceMonitor": {**service_monitor(settings), "metricRelabelings": []},
        "tolerations": TOLERATIONS,
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


def environment(settings: Settings) -> list[Values]:
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


def service_monitor(settings: Settings) -> Values:
    exporter = settings.exporter
    return {
        "enabled": settings.monitoring.enabled,
        "interval": exporter.scrape_interval,
        "scrapeTimeout": exporter.scrape_timeout,
        "honorLabels": False,
        "additionalLabels": {"release": settings.monitoring.release},
        "relabelings": _RELABELINGS,
    }


def _on_gpus() -> Values:
    expression = {"key": GPUS_LABEL, "operator": "Exists"}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
