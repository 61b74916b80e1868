"""Alerts on GPUs that are not there, and on what keeps us from seeing them."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import Alert
from gpuboot.monitoring.rules.promql import RESOURCES, UP, shown_by_exporter
from gpuboot.monitoring.rules.requirements import Requirement

_CAPACITY = f"kube_node_status_capacity{{{RESOURCES}}}"
_ALLOCATABLE = f"kube_node_status_allocatable{{{RESOURCES}}}"
_EXPECTED = "max by (node) (node:gpu_expected:count)"
_DOWN = f"(max by (node) ({UP}) == 0)"

_GPUS = [
    Alert(
        name="GPULost",
        severity="critical",
        action="reboot",
        expr=f"{_EXPECTED}\n"
        f"  - max by (node) (node:gpu_visible:count or 0 * max by (node) ({UP} == 1)) > 0\n"
        f"or {_EXPECTED}\n"
        f"  - (last_over_time(node:gpu_visible:count[1d]) and on (node) {_DOWN}) > 0\n"
        f"or {_EXPECTED}\n"
        f"  - (node:gpu_allocatable:sum and on (node) {_DOWN}) > 0",
        hold_for="5m",
        summary="{{ $value }} GPUs of {{ $labels.node }} are missing",
        description="The inventory promises more GPUs than the exporter shows.",
    ),
    Alert(
        name="GPUDeviceUnhealthy",
        severity="critical",
        action="investigate",
        expr=f"sum by (node, resource) (max by (node, resource) ({_CAPACITY}))\n"
        f"  - sum by (node, resource) (max by (node, resource) ({_ALLOCATABLE})) > 0",
        # a plugin that has gone leaves the capacity for 5 min, and allocatable is 0 at once
        hold_for="7m",
        summary="{{ $value }} {{ $labels.resource }} of {{ $labels.node }} are unhealthy",
        description="The device plugin reported them to the kubelet as unhealthy; pods no longer "
        "get them.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUDevicePluginMissing",
        severity="critical",
        action="investigate",
        expr='max by (node) (kube_node_labels{label_gpuboot_io_gpus!=""}'
        ' or kube_node_labels{label_nvidia_com_gpu_present="true"})\n'
        f"  unless on (node) {_ALLOCATABLE} > 0",
        hold_for="15m",
        summary="{{ $labels.node }} has GPUs and offers none",
        description="It is labelled as a GPU node, but nothing can be scheduled onto its GPUs.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUDriverVersionSkew",
        severity="warning",
        action="investigate",
        expr=f"count({shown_by_exporter('DCGM_FI_DRIVER_VERSION')}) > {{threshold}}",
        hold_for="1h",
        threshold=1,
        summary="{{ $value }} driver versions are in use",
        description="`count by (DCGM_FI_DRIVER_VERSION, node) (DCGM_FI_DEV_SM_CLOCK)` says where.",
    ),
]

_EXPORTER = [
    Alert(
        name="GPUExporterDown",
        severity="warning",
        component="exporter",
        expr=f"max by (node) ({UP}) == 0",
        hold_for="5m",
        summary="The GPU exporter of {{ $labels.node }} does not answer",
        description="Until it answers, nothing is known of the node's GPUs: they may be healthy, "
        "or a dead one may have stopped the exporter.",
    ),
    Alert(
        name="GPUExporterAbsent",
        severity="critical",
        component="exporter",
        expr="(\n  count(node:gpu_expected:count and on (node) kube_node_info) > 0\n"
        "  or (count(node:gpu_expected:count) > 0 unless on () count(kube_node_info))\n"
        f") unless on () {UP}",
        hold_for="10m",
        summary="No GPU exporter is scraped at all",
        description="The inventory has GPUs, and Prometheus has no target for any of them.",
    ),
    Alert(
        name="GPUNodeNotMonitored",
        severity="warning",
        component="exporter",
        expr=f"max by (node) ({_CAPACITY} > 0)\n  unless on (node) {UP}",
        hold_for="15m",
        summary="{{ $labels.node }} has GPUs that are not monitored",
        description="The kubelet offers GPUs; Prometheus has no exporter target on this node.",
        requires=Requirement.KUBE_STATE_METRICS,
    ),
    Alert(
        name="GPUMetricsMissing",
        severity="critical",
        component="exporter",
        action="investigate",
        expr=f"max by (node) ({UP} == 1) unless on (node) node:gpu_visible:count",
        hold_for="5m",
        summary="The exporter of {{ $labels.node }} answers, without any GPU",
        description="DCGM sees nothing, or hangs.",
    ),
    Alert(
        name="GPUExporterMissingCounters",
        severity="info",
        component="exporter",
        expr=f"max by (node) ({UP} == 1 and on (node) node:gpu_visible:count)\n"
        "  unless on (node) DCGM_EXP_GPU_HEALTH_STATUS",
        hold_for="30m",
        summary="The exporter of {{ $labels.node }} does not collect what the alerts need",
        description="Alerts on XIDs, health, ECC and NVLink cannot fire for this node.",
    ),
    Alert(
        name="GPUOperatorDegraded",
        severity="warning",
        component="exporter",
        expr="max(gpu_operator_reconciliation_status) < 1",
        hold_for="15m",
        summary="The GPU Operator is not ready",
        description="Status {{ $value }}: 0 an operand is not ready, below 0 it failed.",
        requires=Requirement.GPU_OPERATOR,
    ),
]

ALERTS = [*_GPUS, *_EXPORTER]
