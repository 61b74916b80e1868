"""Values of gpu-operator, and what it brings into being."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuboot.cluster.values import Values, merge
from gpuboot.config.inventory import Node
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.hosts import gpu_sharing
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.hosts.gpu_sharing import Offer
from gpuboot.monitoring.charts.exporter import (
    RESOURCES,
    environment,
    pod_label_values,
    tolerations,
)
from gpuboot.monitoring.charts.service_monitors import service_monitor
from gpuboot.monitoring.charts.sharing_values import device_plugin, mig_manager
from gpuboot.telemetry import collectors
from gpuboot.telemetry.collectors import collectors_annotation

COLLECTORS_MAP = "gpuboot-dcgm-metrics"


def operator_values(settings: Settings, lock: Lock) -> Values:
    """Values of gpu-operator for driver and toolkit that stand on the host already."""
    by_operator = settings.exporter.kind == "operator"
    values: Values = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "nfd": {"enabled": True},
        "cdi": {"enabled": True},
        "mig": {"strategy": settings.gpu_operator.mig_strategy},
        "migManager": mig_manager(settings),
        "daemonsets": {"tolerations": tolerations(settings)},
        "dcgmExporter": _operated_exporter(settings, lock) if by_operator else _no_exporter(),
    }
    if settings.gate.enabled:
        # what makes the operands come to a node must not wait until it is proven
        everywhere = {"tolerations": tolerations(settings)}
        values["operator"] = everywhere
        values["node-feature-discovery"] = dict.fromkeys(("master", "gc", "worker"), everywhere)
    if configured := device_plugin(settings):
        values["devicePlugin"] = configured
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
    if settings.dcgm == "host":
        # The operator looks for such an engine before it adds our environment, so it never finds
        # it (gpu-operator v26.7.0, controllers/object_controls.go:1833 and :1936).
        values["hostNetwork"] = True
    if exporter.arguments:
        values["args"] = list(exporter.arguments)
    return values


def expected_gpus(
    nodes: Iterable[Node],
    settings: Settings,
    devices: Mapping[str, Sequence[int]],
    drivers: Mapping[str, DriverProfiles] | None = None,
) -> dict[str, Offer]:
    """What each GPU node is to offer, by Kubernetes node name.

    + devices: PCI device ids of a host's GPUs, by inventory name
    + drivers: the MIG profiles that its driver has, likewise, where that was asked
    """
    return {
        node.name: gpu_sharing.offer(
            node, settings, devices.get(node.host, ()), (drivers or {}).get(node.host)
        )
        for node in nodes
        if node.gpus
    }


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
