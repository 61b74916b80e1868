"""Values of gpu-operator, and what it brings into being."""

from __future__ import annotations

import hashlib

import yaml

from gpuboot.charts.exporter import (
    RESOURCES,
    environment,
    on_host_network,
    pod_label_values,
    tolerations,
)
from gpuboot.charts.service_monitors import service_monitor
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.kubernetes.values import Values, merge
from gpuboot.telemetry import collectors
from gpuboot.telemetry.collectors import collectors_annotation

COLLECTORS_MAP = "gpuboot-dcgm-metrics"
PLUGIN_MAP = "gpuboot-device-plugin"


def operator_values(settings: Settings, lock: Lock) -> Values:
    """Values of gpu-operator for driver and toolkit that stand on the host already."""
    by_operator = settings.exporter.kind == "operator"
    values: Values = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "nfd": {"enabled": True},
        "cdi": {"enabled": True},
        "mig": {"strategy": settings.gpu_operator.mig_strategy},
        "migManager": {"enabled": settings.gpu_operator.mig_manager},
        "daemonsets": {"tolerations": tolerations(settings)},
        "dcgmExporter": _operated_exporter(settings, lock) if by_operator else _no_exporter(),
    }
    if settings.gate.enabled:
        # what makes the operands come to a node must not wait until it is proven
        everywhere = {"tolerations": tolerations(settings)}
        values["operator"] = everywhere
        values["node-feature-discovery"] = dict.fromkeys(("master", "gc", "worker"), everywhere)
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
        "env": environment(settings),
        "resources": RESOURCES,
        # The operator merges them into the pods' own (object_controls.go, addExtraAnnotations).
        "annotations": collectors_annotation(exporter),
        "config": {"name": COLLECTORS_MAP, "create": True, "data": collectors(exporter)},
        "serviceMonitor": service_monitor(settings),
        **pod_label_values(exporter),
    }
    if on_host_network(settings):
        # The operator looks for such an engine before it adds our environment, so it never finds
        # it (gpu-operator v26.7.0, controllers/object_controls.go:1833 and :1936).
        values["hostNetwork"] = True
    if exporter.arguments:
        values["args"] = list(exporter.arguments)
    return values


def _time_slicing(settings: Settings) -> Values:
    """A configuration of the device plugin, named by what stands in it.

    config-manager (k8s-device-plugin v0.20.0, cmd/config-manager/main.go:273) looks at its files
    when a label of the node changes, and at no other time. Another name of the default is another
    pod template (object_controls.go:2893 and :2929), so the pods restart with new content.
    """
    operator = settings.gpu_operator
    shared = {"name": "nvidia.com/gpu", "replicas": operator.time_slices}
    config = {
        "version": "v1",
        "flags": {"migStrategy": operator.mig_strategy},
        "sharing": {"timeSlicing": {"renameByDefault": False, "resources": [shared]}},
    }
    text = yaml.safe_dump(config, sort_keys=False)
    name = f"time-slices-{operator.time_slices}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return {"name": PLUGIN_MAP, "create": True, "default": name, "data": {name: text}}


def expected_gpus(nodes: tuple[Node, ...], settings: Settings) -> dict[str, int]:
    """Allocatable `nvidia.com/gpu` that each GPU node must show, by Kubernetes node name.

    MIG slices have other resource names under the `mixed` strategy and other counts under
    `single`, so this holds for whole GPUs.
    """
    slices = settings.gpu_operator.time_slices
    return {node.name: node.gpus * slices for node in nodes if node.gpus}


def operands(settings: Settings, lock: Lock, nodes: int) -> dict[str, int]:
    """The GPU Operator's own Deployment and the DaemonSets it makes, with their numbers of nodes.

    + nodes: how many nodes have GPUs
    """
    values = operator_values(settings, lock)
    daemonsets = {
        "nvidia-operator-validator": True,
        "nvidia-device-plugin-daemonset": values.get("devicePlugin", {}).get("enabled", True),
        "gpu-feature-discovery": values.get("gfd", {}).get("enabled", True),
        "nvidia-dcgm-exporter": values["dcgmExporter"]["enabled"],
    }
    enabled_daemonsets = [name for name, enabled in daemonsets.items() if enabled and nodes]
    return {"gpu-operator": 1} | dict.fromkeys(enabled_daemonsets, nodes)
