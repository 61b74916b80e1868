"""The values of the Helm charts, as plain dicts made from settings and version lock.

Sources of the keys: values.yaml of gpu-operator v26.7.0, kube-prometheus-stack 88.5.3 and
dcgm-exporter 4.8.4; tests check every key against the charts' own lists. Fluent Bit's are in
`gpuboot.monitoring.charts.logs`.
"""

from gpuboot.monitoring.charts.exporter import (
    GPUS_LABEL,
    exporter_values,
    needs_runtime_class,
    rollout_s,
)
from gpuboot.monitoring.charts.gpu_operator import (
    COLLECTORS_MAP,
    expected_gpus,
    operands,
    operator_values,
)
from gpuboot.monitoring.charts.monitoring import (
    GRAFANA_NAME,
    GRAFANA_SECRET,
    STACK,
    claim_names,
    monitoring_values,
    monitoring_workloads,
    remade_claims,
)
from gpuboot.monitoring.charts.operator_daemonsets import expected_operands
from gpuboot.monitoring.charts.repositories import PUBLISHERS, repository, used
from gpuboot.monitoring.charts.service_monitors import (
    exporter_objects,
    secrets_needed,
    server_name,
)
from gpuboot.monitoring.charts.sharing import PLUGIN_CONFIGS, PLUGIN_MAP

__all__ = [
    "COLLECTORS_MAP",
    "GPUS_LABEL",
    "GRAFANA_NAME",
    "GRAFANA_SECRET",
    "PLUGIN_CONFIGS",
    "PLUGIN_MAP",
    "PUBLISHERS",
    "STACK",
    "claim_names",
    "expected_gpus",
    "expected_operands",
    "exporter_objects",
    "exporter_values",
    "monitoring_values",
    "monitoring_workloads",
    "needs_runtime_class",
    "operands",
    "operator_values",
    "remade_claims",
    "repository",
    "rollout_s",
    "secrets_needed",
    "server_name",
    "used",
]
