"""Alerts on what Prometheus reads that cannot be trusted: exporters that come and go, values that
stand still, and clocks that are wrong."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import EXPORTER_LOG, ON_GPU, OWN_SOURCE, Alert
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, UP
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
    "    * on (job, instance) group_left (nodename) node_uname_info,"
    ' "node", "$1", "nodename", "(.+)")))'
)

ALERTS = [
    Alert(
        name="GPUExporterUnstable",
        severity="warning",
        component="exporter",
        action="none",
        expr=f"max by (node) (\n  changes({UP}[1h]) / 2 > {{threshold}}"
        f" and changes({UP}[20m]) > 0\n)\n"
        "or max by (node) (\n"
        f"  (increase({_RESTARTS}[1h]) > {{threshold}} and changes({_RESTARTS}[20m]) > 0)\n"
        f"  * on (namespace, pod) group_left (node) {_NODE_OF_POD}\n)",
        threshold=3,
        unit="times in an hour that it stopped answering, or that its container restarted",
        summary="The GPU exporter of {{ $labels.node }} comes and goes",
        description="{{ $value | printf \"%.0f\" }} times in an hour it stopped answering or "
        "restarted.",
        meaning="The exporter answers some scrapes and misses others, or its container restarts "
        "again and again. It is never away for the five minutes that GPUExporterDown waits for.",
        reason="Alerts that must hold for some minutes may never fire, and counters of XIDs begin "
        "again with each restart: faults of the node's GPUs can go unseen.",
        check=("When: `up{job=~\".*dcgm-exporter\"}` over an hour; how long scrapes take: "
               "`scrape_duration_seconds{job=~\".*dcgm-exporter\"}`", EXPORTER_LOG,
               "Killed for memory? `kubectl describe pod -n NAMESPACE POD`, *Last State*"),
        remedy=(
            "OOMKilled: raise its memory limit, under the GPU Operator by `gpu_operator.values`.",
            "Scrapes take two thirds of `exporter.scrape_interval`, their limit: raise it, or "
            "collect fewer fields.",
            "Its liveness probe fails, or it panics: a GPU that does not answer holds DCGM up. On "
            "the node, does `nvidia-smi` hang? See GPULost.",
        ),
        source=OWN_SOURCE,
    ),
    Alert(
        name="GPUMetricsFrozen",
        severity="warning",
        component="exporter",
        action="none",
        expr=f"max by ({GPU}) (changes({_ENERGY}[15m])) == 0\n"
        f"and on ({GPU}) max by ({GPU}) (count_over_time({_ENERGY}[15m])) > {_SAMPLES}\n"
        f"and on ({GPU}) {_ENERGY} > 0 < {BLANK_VALUE}",
        hold_for="5m",
        summary=f"The exporter's values of {ON_GPU} stand still",
        description="Its energy counter has not moved for a quarter of an hour. {{ $labels.UUID }}",
        meaning="The exporter answers, with the same values each time. A GPU that has power uses "
        "energy, idle or not, so its counter must rise with every sample. Kinds of GPUs without "
        "that counter (vGPU guests, GPUs before Volta) are not judged.",
        reason="Whatever happens to this GPU, no alert sees it: temperature, errors and use are of "
        "the past.",
        check=(EXPORTER_LOG,
               f"`{_ENERGY}{{UUID=\"UUID\"}}` against, on the node, `nvidia-smi -i UUID "
               "--query-gpu=power.draw,temperature.gpu --format=csv`",
               "`gpuboot verify INVENTORY`: the link `exporter` says since when"),
        remedy=(
            "Delete the exporter's pod of that node (Docker hosts: restart its container). With "
            "DCGM on the host: `systemctl restart nvidia-dcgm` there.",
            "It comes back, or nvidia-smi hangs: the driver does not answer for this GPU. See "
            "GPULost.",
        ),
        source="NVML: the energy counter is in mJ since the driver was loaded; the time is "
        f"{OWN_SOURCE}",
    ),
    Alert(
        name="NodeClockWrong",
        severity="warning",
        component="cluster",
        action="none",
        expr=f"abs{_CLOCK} > {{threshold}}",
        hold_for="2m",
        threshold=30,
        unit="seconds between the host's clock and Prometheus'",
        summary="The clock of {{ $labels.node }} is {{ $value | printf \"%.0f\" }} s off",
        description="It differs by that much from the clock of Prometheus' host. If all other "
        "nodes are named as well, it is that one's clock.",
        meaning="node-exporter tells the host's time with each scrape, and it is not Prometheus'. "
        "Ages that gpuboot computes (of DCGM's checks, of backups) are by the node's own clock, "
        "so that they stay right; others are not.",
        reason="A kubelet's reports look old after 40 s, certificates seem to be not valid yet or "
        "expired, tokens are refused, and logs and metrics stand at different times.",
        check=("On the node: `date`, `timedatectl`, `chronyc tracking` (or "
               "`timedatectl timesync-status`)",
               "Did it jump? `journalctl | grep -i -E 'time.*(changed|jump|step)'`"),
        remedy=("`timedatectl set-ntp true`; `chronyc makestep` sets it at once. Time servers must "
                "be reachable (UDP 123).",
                "Wrong again after a power cut: the battery of the mainboard's clock.",
                "A virtual machine that was suspended: switch on its hypervisor's time "
                "synchronisation, or NTP in it.",
                "Verify: `gpuboot verify INVENTORY`; the link `clock` must pass."),
        requires=Requirement.NODE_EXPORTER,
        source=f"A kubelet's report counts as missing after 40 s; the limit is {OWN_SOURCE}",
    ),
]  # fmt: skip
