"""Alerts on what Prometheus reads that cannot be trusted: exporters that come and go, values that
stand still, and clocks that are wrong."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, UP, dead_profiling
from gpuboot.monitoring.rules.requirements import Requirement

_RESTARTS = 'kube_pod_container_status_restarts_total{pod=~".*dcgm-exporter.*"}'
_NODE_OF_POD = "max by (namespace, pod, node) (kube_pod_info)"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_SAMPLES = 5  # of an energy counter in 15 minutes; fewer tell nothing


def _clock_lead(time: str) -> str:
    """Seconds that a host's clock is ahead of Prometheus', at the moment of the scrape."""
    return f"({time} - timestamp({time}))"


_WITH_NODE, _NAMELESS = 'node_time_seconds{node!=""}', 'node_time_seconds{node=""}'
# By the target's own label where it has one, as on Docker hosts; else by the host's name.
_CLOCK = (
    f"(max by (node) ({_clock_lead(_WITH_NODE)})\n"
    f"  or max by (node) (label_replace({_clock_lead(_NAMELESS)}\n"
    "    * on (job, instance) group_left (nodename)\n"
    "    max by (job, instance, nodename) (node_uname_info),"
    ' "node", "$1", "nodename", "(.+)")))'
)

ALERTS = [
    Alert(
        name="GPUExporterUnstable",
        severity="warning",
        component="exporter",
        expr=f"max by (node) (\n  changes({UP}[1h]) / 2 > {{threshold}}"
        f" and changes({UP}[20m]) > 0\n)\n"
        "or max by (node) (\n"
        f"  (increase({_RESTARTS}[1h]) > {{threshold}} and changes({_RESTARTS}[20m]) > 0)\n"
        f"  * on (namespace, pod) group_left (node) {_NODE_OF_POD}\n)",
        threshold=3,
        summary="The GPU exporter of {{ $labels.node }} comes and goes",
        description='{{ $value | printf "%.0f" }} times in an hour it stopped answering or '
        "restarted.",
    ),
    Alert(
        name="GPUMetricsFrozen",
        severity="warning",
        component="exporter",
        expr=f"max by ({GPU}) (changes({_ENERGY}[15m])) == 0\n"
        f"and on ({GPU}) max by ({GPU}) (count_over_time({_ENERGY}[15m])) > {_SAMPLES}\n"
        f"and on ({GPU}) {_ENERGY} > 0 < {BLANK_VALUE}\n"
        f"or 0 * {dead_profiling(GPU, '15m')}",
        hold_for="5m",
        summary=f"The exporter's values of {ON_GPU} stand still",
        description="Its energy counter has not moved for a quarter of an hour, or its profiling "
        "fields stay at 0 while it works. {{ $labels.UUID }}",
    ),
    Alert(
        name="NodeClockWrong",
        severity="warning",
        component="cluster",
        expr=f"abs{_CLOCK} > {{threshold}}",
        hold_for="2m",
        threshold=30,
        summary='The clock of {{ $labels.node }} is {{ $value | printf "%.0f" }} s off',
        description="It differs by that much from the clock of Prometheus' host. If all other "
        "nodes are named as well, it is that one's clock.",
        requires=Requirement.NODE_EXPORTER,
    ),
]
