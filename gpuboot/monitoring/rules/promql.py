"""Pieces of PromQL that many rules are made of."""

from __future__ import annotations

import json

from gpuboot.telemetry.anchor import ANCHORS

# The exporter's job: `nvidia-dcgm-exporter` under the operator, `dcgm-exporter` from its chart.
EXPORTER = 'job=~".*dcgm-exporter"'
UP = f"up{{{EXPORTER}}}"
# What a GPU is to the scheduler. kube-state-metrics writes nvidia.com/mig-1g.10gb with underscores;
# nvidia.com/gpu.shared is what time-slicing and MPS offer with `renameByDefault`.
RESOURCES = 'resource=~"nvidia_com_(gpu|gpu_shared|mig_.+)"'
# The same in a quota. Other plugins of NVIDIA's offer network cards, as nvidia.com/hostdev.
QUOTA_RESOURCES = 'resource=~"requests[.]nvidia[.]com/(gpu|gpu[.]shared|mig-.+)"'
GPU = "node, UUID, gpu"
# One GPU or MIG instance; several pods hold the same one under time-slicing.
DEVICE = "node, UUID, GPU_I_ID"
SLICE = f"{GPU}, GPU_I_ID, GPU_I_PROFILE"
HOLDER = "node, UUID, gpu, modelName, namespace, pod, container, GPU_I_ID, GPU_I_PROFILE"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
# DCGM writes 2^47 (numbers with a fraction) or 0x7ffffffffffffff0 (whole ones), and a little more,
# for what it does not know (dcgm_structs.h, DCGM_FP64_BLANK and DCGM_INT64_BLANK). No value of ours
# comes near; counted nanoseconds may pass 2^47 within two days.
BLANK_VALUE, BLANK_NS = "1e14", "9e18"
# GPU_UTIL is a percentage. DCGM now and then tells of millions (NVIDIA/DCGM issue 199).
_BEYOND_UTIL, _BUSY_UTIL = "101", "5"
# How long a value stands in for one that is not there: restarts and gaps of scraping.
GAP = "10m"


def quoted(text: str) -> str:
    """`text` as a string of PromQL, quotes included."""
    return json.dumps(text, ensure_ascii=False)


def closed_nodes(matchers: str = "") -> dict[str, str]:
    """Why a node takes no pods -> PromQL of the nodes of which that is so.

    + matchers: of nodes, inside of the braces
    """
    ready = f'kube_node_status_condition{{condition="Ready",status="true",{matchers}}}'
    return {
        "not ready": f"max by (node) ({ready}) == 0",
        "cordoned": f"max by (node) (kube_node_spec_unschedulable{{{matchers}}}) == 1",
        # a taint of ours (docs/gate.md)
        "closed": f'max by (node) (kube_node_spec_taint{{key=~"gpuboot.io/.+",{matchers}}}) == 1',
    }


def non_blank(metric: str, matchers: str = "") -> str:
    """The metric where it has a value, and not DCGM's mark for none.

    + matchers: inside of the braces, may be ""
    """
    return f"{metric}{{{matchers}}} < {BLANK_VALUE}" if matchers else f"{metric} < {BLANK_VALUE}"


def shown_by_exporter(labels: str, matchers: str = "") -> str:
    """1 for each GPU or MIG instance that the exporter shows now, or what they have in common.

    + labels: those that are kept
    + matchers: inside of the braces, may be ""
    """
    series = "\n  or ".join(non_blank(anchor, matchers) for anchor in ANCHORS)
    return f"group by ({labels}) ({series})"


def over(function: str, series: str, window: str, blank_value: str = BLANK_VALUE) -> str:
    """`function` over `window` of the series that had a value throughout it.

    + series: a selector
    + blank_value: what no value reaches
    """
    if series.startswith(UTIL):
        blank_value = _BEYOND_UTIL
    return f"({function}({series}[{window}]) and max_over_time({series}[{window}]) < {blank_value})"


def now_and(function: str, metric: str, matchers: str, window: str) -> str:
    """`function` over `window` of the series that are there now.

    A window alone would keep a pod's series for its whole length after the pod has ended, and
    count its GPU twice, since the same GPU goes on without the pod's labels.

    + matchers: inside of the braces, may be ""
    """
    series = f"{metric}{{{matchers}}}" if matchers else metric
    return f"({over(function, series, window)} and {series})"


def age(metric: str) -> str:
    """Seconds since the time that a program on a node left for node-exporter, without its sign.

    By that node's own clock, so that a wrong one makes nothing look old or fresh; by Prometheus'
    where the node tells none. A time to come is as wrong as one that has long gone. A pod of
    node-exporter that was replaced while Prometheus was away is there for five minutes more.
    """
    return (
        "abs(max by (job, instance) (node_time_seconds)"
        f" - on (job, instance) group_right () {metric}\n"
        f"  or time() - {metric} unless on (job, instance) node_time_seconds)"
    )


def dead_profiling(labels: str, window: str) -> str:
    """GPUs whose profiling fields stay at 0 although kernels run, as GPU_UTIL tells.

    After some XIDs, or weeks, DCGM's profiling gives nothing else until DCGM restarts
    (NVIDIA/DCGM issue 303, NVIDIA/dcgm-exporter issue 662).
    """
    return (
        f"(max by ({labels}) (max_over_time({ENGINE}[{window}])) == 0\n"
        f"  and on ({labels}) max by ({labels}) ({over('avg_over_time', UTIL, window)})"
        f" > {_BUSY_UTIL})"
    )


def profiled(metric: str, function: str, window: str, matchers: str = "") -> str:
    """`function` over `window` of a profiling field of each GPU, with labels `HOLDER`."""
    return (
        f"max by ({HOLDER}) ({now_and(function, metric, matchers, window)}\n"
        f"  unless on ({DEVICE}) {dead_profiling(DEVICE, window)})"
    )


def engine(function: str, window: str, matchers: str = "") -> str:
    """How busy each GPU's engine was, 0 to 1, with labels `HOLDER`.

    GPUs without profiling fields (GeForce) answer with GPU_UTIL, the share of time in which any
    kernel ran. While somebody profiles a GPU its fields pause: that is no reason to take GPU_UTIL,
    which means something else, so the field must be gone for an hour. Of a GPU that pods share,
    GPU_UTIL has the whole device's series and one of each pod's own work, which is less. What
    contradicts itself is unknown (`dead_profiling`).

    + function: one of PromQL's `*_over_time`
    """
    held_util = now_and(function, UTIL, matchers, window)
    device = f"max by ({DEVICE}) ({now_and(function, UTIL, '', window)})"
    return (
        f"{profiled(ENGINE, function, window, matchers)}\n"
        f"or max by ({HOLDER}) ((0 * {held_util} + on ({DEVICE}) group_left () {device}) / 100\n"
        f"  unless on (node, UUID) max_over_time({ENGINE}[1h]) < {BLANK_VALUE})"
    )


def level(metric: str, labels: str = GPU) -> str:
    """The value of each GPU, whatever pod holds it and however often it is exported.

    An alert on the raw series would end and start again with every pod that comes or goes, and with
    every gap of scraping: a GPU that is not shown now keeps its last value for `GAP`.

    + metric: a selector
    """
    return (
        f"(max by ({labels}) ({non_blank(metric)})\n"
        f"  or max by ({labels}) (last_over_time({metric}[{GAP}]) < {BLANK_VALUE}"
        f" unless on (node, UUID) {metric}))"
    )
