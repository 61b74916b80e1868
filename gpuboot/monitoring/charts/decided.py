"""Chart values that gpuboot decides, by other settings or always: `values` of a site may not.

Both `gpu_operator.values` and `monitoring.values` are laid over gpuboot's own. The rest of gpuboot
goes by its settings, so a value that says otherwise would be applied and then work against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.values import Values
from gpuboot.config.problems import Problem
from gpuboot.config.settings import Settings
from gpuboot.config.versions import Lock
from gpuboot.monitoring.charts.gpu_operator_values import operator_values
from gpuboot.monitoring.charts.monitoring_values import monitoring_values

_UNSET = object()
_OPERATOR, _STACK = "gpu_operator.values", "monitoring.values"


@dataclass(frozen=True)
class _Decided:
    """A value that is gpuboot's.

    + path: dotted; instead: the setting that decides it, or why there is none
    + value: what it is where gpuboot's own values do not have it: the chart's default
    """

    path: str
    instead: str
    value: Any = _UNSET


_BY_OPERATOR = (
    _Decided("driver.enabled", "`driver`: gpuboot installs it on the hosts"),
    _Decided("toolkit.enabled", "gpuboot installs it on the hosts"),
    _Decided("cdi.enabled", "devices come by CDI alone (docs/sharing.md)"),
    _Decided("operator.defaultRuntime", "`runtime`: containerd", "containerd"),
    _Decided("clusterPolicy.deployCR", "gpuboot waits for the ClusterPolicy", True),
    _Decided("gpuCluster.deployCR", "gpuboot waits for the ClusterPolicy", False),
    _Decided("sandboxWorkloads.enabled", "GPUs are for containers", False),
    _Decided("mig.strategy", "`gpu_operator.mig_strategy`"),
    _Decided("migManager.enabled", "`gpu_operator.mig_manager`"),
    _Decided("migManager.config", "`mig_layouts`"),
    _Decided("devicePlugin.enabled", "gpuboot waits for the GPUs that it offers", True),
    _Decided("devicePlugin.config", "`sharing` and `gpu_operator.time_slices`"),
    _Decided("dcgmExporter.enabled", "`exporter.kind`"),
    _Decided("dcgmExporter.env", "list gpuboot's own as well, or leave it to `exporter`"),
)
# without it operands do not come to a node that is not proven
_GATE_TOLERATIONS = _Decided("daemonsets.tolerations", "list gpuboot's own as well")
_BY_STACK = (
    _Decided("prometheus.enabled", "`monitoring.enabled`", True),
    _Decided("prometheus.prometheusSpec.scrapeInterval", "`monitoring.scrape_interval`"),
    _Decided("prometheus.prometheusSpec.externalLabels.cluster", "`cluster.name`"),
    *(
        _Decided(
            f"prometheus.prometheusSpec.{kind}SelectorNilUsesHelmValues",
            "gpuboot's own objects have to be selected",
        )
        for kind in ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")
    ),
    _Decided("prometheus.prometheusSpec.remoteWrite", "`monitoring.remote_write`"),
    _Decided("prometheus.prometheusSpec.additionalScrapeConfigs", "list gpuboot's own as well"),
    _Decided("grafana.enabled", "`monitoring.grafana`"),
    _Decided("grafana.admin", "the password is in a Secret of gpuboot's"),
)


def problems(settings: Settings, lock: Lock) -> list[Problem]:
    """A problem for each setting that contradicts what gpuboot decides; keys alone are named."""
    problems: list[Problem] = []
    operator, monitoring = settings.gpu_operator, settings.monitoring
    if operator.enabled and operator.values:
        plain = settings.model_copy(
            update={"gpu_operator": operator.model_copy(update={"values": {}})}
        )
        own_values = operator_values(plain, lock)
        decided = (*_BY_OPERATOR, _GATE_TOLERATIONS) if settings.gate.enabled else _BY_OPERATOR
        problems += _problem(_OPERATOR, decided, own_values, operator_values(settings, lock))
    if monitoring.enabled and monitoring.values:
        plain = settings.model_copy(
            update={"monitoring": monitoring.model_copy(update={"values": {}})}
        )
        own_values = monitoring_values(plain)
        problems += _problem(_STACK, _BY_STACK, own_values, monitoring_values(settings))
    return problems


def _problem(
    setting: str, decided: tuple[_Decided, ...], own_values: Values, merged: Values
) -> Iterator[Problem]:
    contradictions = [item for item in decided if _contradicts(item, own_values, merged)]
    if contradictions:
        names = ", ".join(item.path for item in contradictions)
        remedies = "; ".join(f"{item.path}: {item.instead}" for item in contradictions)
        yield Problem(
            "",
            f"{setting} says otherwise than gpuboot decides: {names}",
            f"leave out what is gpuboot's ({remedies})",
        )


def _contradicts(item: _Decided, own_values: Values, merged: Values) -> bool:
    """Whether the merged values lack what gpuboot has there; lists may have more."""
    value = _at(own_values, item.path)
    value = item.value if value is _UNSET else value
    final = _at(merged, item.path)
    if value is _UNSET or final is _UNSET:
        return False
    if isinstance(value, list) and isinstance(final, list):
        return any(entry not in final for entry in value)
    return bool(value != final)


def _at(values: Any, path: str) -> Any:
    """What the values have at a path, or at the last place above it that is no map."""
    for key in path.split("."):
        if not isinstance(values, Mapping):
            return values
        if key not in values:
            return _UNSET
        values = values[key]
    return values
