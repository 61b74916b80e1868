"""The values of the Helm charts, as plain dicts made from settings and version lock.

Sources of the keys: values.yaml of gpu-operator v26.7.0, kube-prometheus-stack 88.5.3 and
dcgm-exporter 4.8.4; tests check every key against the charts' own lists. Fluent Bit's are in
`gpuboot.charts.logs`.
"""

from gpuboot.charts.exporter import (
    GPUS_LABEL,
    exporter_values,
    needs_runtime_class,
    rollout_s,
)
from gpuboot.charts.gpu_operator import (
    COLLECTORS_MAP,
    expected_gpus,
    operands,
    operator_values,
)
from gpuboot.charts.monitoring import (
    GRAFANA_SECRET,
    claim_names,
    fullname,
    grafana_name,
    monitoring_values,
    monitoring_workloads,
    remade_claims,
)
from gpuboot.charts.operator_daemonsets import expected_operands
from gpuboot.charts.repositories import PUBLISHERS, repository, used
from gpuboot.charts.service_monitors import exporter_objects, secrets_needed, server_name
from gpuboot.charts.sharing import PLUGIN_CONFIGS, PLUGIN_MAP

__all__ = [
    "COLLECTORS_MAP",
    "GPUS_LABEL",
    "GRAFANA_SECRET",
    "PLUGIN_CONFIGS",
    "PLUGIN_MAP",
    "PUBLISHERS",
    "claim_names",
    "expected_gpus",
    "expected_operands",
    "exporter_objects",
    "exporter_values",
    "fullname",
    "grafana_name",
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
