"""Values that make dcgm-exporter collect, run and be scraped, for either chart that brings it."""

from __future__ import annotations

from gpuboot.cluster import node_gate
from gpuboot.cluster.helm_releases import ROLLOUT_S
from gpuboot.cluster.values import Values
from gpuboot.config.settings import Exporter, Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import gpu_sharing
from gpuboot.monitoring.charts.service_monitors import service_monitor
from gpuboot.telemetry import collectors
from gpuboot.telemetry.collectors import collectors_annotation

GPUS_LABEL = "gpuboot.io/gpus"
_COLLECTORS = "/etc/dcgm-exporter/default-counters.csv"
# The GPU taint that NVIDIA's own operands tolerate, and the control plane's.
TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {
        "key": "node-role.kubernetes.io/control-plane",
        "operator": "Exists",
        "effect": "NoSchedule",
    },
]

# The chart's 512 MiB are too few for eight GPUs, and its 200m of CPU let probes time out; the
# operator sets no limit at all to what leaks (dcgm-exporter issues 609 and 702).
RESOURCES = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "1Gi"},
}
# A new pod is first asked after 45 s whether it is ready, and nodes follow one another:
# gpu-operator v26.7.0, assets/state-dcgm-exporter/0800_daemonset.yaml and daemonsets.rollingUpdate;
# the chart 4.8.4, readinessProbe and rollingUpdate.
_RESTART_S = 75
# No more than profiling needs; these are the chart's defaults, and stay ours if it changes them.
_PRIVILEGES = {
    "runAsNonRoot": False,
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
}


def exporter_values(settings: Settings, lock: Lock) -> Values:
    """Values of the stand-alone dcgm-exporter chart.

    With `customMetrics` the chart puts our collectors at /etc/dcgm-exporter/default-counters.csv.
    """
    exporter = settings.exporter
    values: Values = {
        "image": {"tag": lock.images.dcgm_exporter},
        "arguments": ["-f", _COLLECTORS, *exporter.arguments],
        "customMetrics": collectors(exporter),
        "podAnnotations": collectors_annotation(exporter),
        "extraEnv": environment(settings),
        "serviceMonitor": {**service_monitor(settings), "metricRelabelings": []},
        "resources": RESOURCES,
        "securityContext": _PRIVILEGES,
        # a host engine listens on the node's own loopback, which pods cannot reach
        "hostNetwork": settings.dcgm == "host",
        "hostPID": False,
        "tolerations": tolerations(settings),
        # Our own label, since NVIDIA's nvidia.com/gpu.present needs the operator.
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _on_gpus()}
        },
    }
    if exporter.pod_labels:
        values["kubernetes"] = {**pod_label_values(exporter), "rbac": {"create": True}}
    if settings.runtime.mode != "default":
        # It claims no GPU and must see them all, which a runtime alone can give it: containerd
        # reads CDI devices of containers, and a pod's annotations never become a container's
        # (containerd v2, internal/cri/server/container_create_linux.go:103).
        values["runtimeClassName"] = "nvidia"
    return values


def tolerations(settings: Settings) -> list[dict[str, str]]:
    """What pods tolerate that belong on GPU nodes whether these are proven or not."""
    return [*TOLERATIONS, *([node_gate.TOLERATION] if settings.gate.enabled else [])]


def rollout_s(nodes: int) -> int:
    """How long to wait until the exporter has restarted on every node. Unit: seconds.

    + nodes: how many it runs on
    """
    return max(ROLLOUT_S, nodes * _RESTART_S)


def needs_runtime_class(settings: Settings) -> bool:
    """Whether RuntimeClass nvidia is ours to make; the GPU Operator makes it where it runs.

    Source: gpu-operator v26.7.0, assets/pre-requisites/0200_runtime_class.yaml.
    """
    return settings.runtime.mode != "default" and not settings.gpu_operator.enabled


def environment(settings: Settings) -> list[Values]:
    env = {"DCGM_EXPORTER_INTERVAL": str(settings.exporter.interval_ms)}
    if settings.engine:
        env["DCGM_REMOTE_HOSTENGINE_INFO"] = settings.engine
    if gpu_sharing.most_replicas(settings) > 1:
        # Without it only one of the pods that share a GPU is named (dcgm-exporter, app.go).
        env["KUBERNETES_VIRTUAL_GPUS"] = "true"
    return [{"name": name, "value": value} for name, value in env.items()]


def pod_label_values(exporter: Exporter) -> Values:
    """The switches for labels of pods, under the names that both charts give them.

    The exporter searches for its expressions anywhere in a name, and takes every label when none
    of them is an expression; so each is anchored here, and checked in the settings.
    """
    if not exporter.pod_labels:
        return {}
    allowed = [f"^(?:{expression})$" for expression in exporter.pod_labels]
    return {"enablePodLabels": True, "podLabelAllowlistRegex": allowed}


def _on_gpus() -> Values:
    expression = {"key": GPUS_LABEL, "operator": "Exists"}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
