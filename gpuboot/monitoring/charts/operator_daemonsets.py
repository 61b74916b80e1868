"""What gpu-operator's values make of its DaemonSets, as far as gpuboot or a site sets them."""

from __future__ import annotations

from collections.abc import Mapping

from gpuboot.cluster.operands import ExpectedOperand
from gpuboot.cluster.values import Values
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.monitoring.charts.gpu_operator_values import operator_values

# Key in the values -> DaemonSet and container (gpu-operator v26.7.0, assets/*/*daemonset.yaml).
_OPERAND_DAEMONSETS = {
    "devicePlugin": ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"),
    "gfd": ("gpu-feature-discovery", "gpu-feature-discovery"),
    "dcgmExporter": ("nvidia-dcgm-exporter", "nvidia-dcgm-exporter"),
    "validator": ("nvidia-operator-validator", "nvidia-operator-validator"),
}
_BY_STRATEGY = ("devicePlugin", "gfd")
# The exporter's variables that our settings take away again when they are unset.
_ENGINE = "DCGM_REMOTE_HOSTENGINE_INFO"
_OPTIONAL_ENV = (
    _ENGINE,
    "DCGM_EXPORTER_DEVICES_STR",
    "KUBERNETES_VIRTUAL_GPUS",
)


def expected_operands(settings: Settings, lock: Lock) -> dict[str, ExpectedOperand]:
    """DaemonSet -> what it must be made of; of those that the values do not turn off."""
    values = operator_values(settings, lock)
    if not values.get("clusterPolicy", {}).get("deployCR", True):
        return {}
    chart = f"gpu-operator-{lock.charts['gpu-operator'].version}"
    return {
        name: _expected(key, container, values, chart)
        for key, (name, container) in _OPERAND_DAEMONSETS.items()
        if values.get(key, {}).get("enabled", True)
    }


def _expected(key: str, container: str, values: Values, chart: str) -> ExpectedOperand:
    operand: Mapping[str, object] = values.get(key, {})
    exporter = key == "dcgmExporter"
    # The operator gives all of a pod's containers the resources of one (object_controls.go:1817).
    return ExpectedOperand(
        container=container,
        chart=chart,
        version=str(operand.get("version", "")),
        env=_env(key, values),
        resources=values.get(key, {}).get("resources", {}),
        annotations=values.get(key, {}).get("annotations", {}),
        tolerations=values.get("daemonsets", {}).get("tolerations", ()),
        config=_config(values) if key in _BY_STRATEGY else None,
        args=values[key].get("args", ()) if exporter else None,
        host_network=bool(operand.get("hostNetwork")) if exporter else None,
    )


def _env(key: str, values: Values) -> dict[str, str | None]:
    variables: dict[str, str | None] = {}
    if key in _BY_STRATEGY:
        variables["MIG_STRATEGY"] = values["mig"]["strategy"] or None
    if key == "dcgmExporter":
        variables = dict.fromkeys(_OPTIONAL_ENV)
        if values.get("dcgm", {}).get("enabled"):
            del variables[_ENGINE]  # the operator names its own engine (object_controls.go:1829)
    configured = {
        item["name"]: item.get("value", "") for item in values.get(key, {}).get("env", ())
    }
    return variables | configured


def _config(values: Values) -> str:
    config = values.get("devicePlugin", {}).get("config", {})
    return str(config.get("default", "")) if config.get("name") else ""
