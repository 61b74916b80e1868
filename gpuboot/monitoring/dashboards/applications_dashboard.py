"""What applications do with the GPUs they hold: tokens, samples and queues beside load and power.

The names that applications export are those of docs/applications.md.
"""

from __future__ import annotations

from gpuboot.monitoring.dashboards.spec import (
    POD_LABELS,
    Column,
    Dashboard,
    Panel,
    Row,
    graph,
    stat,
)
from gpuboot.monitoring.dashboards.variables import HELD_BY

_PODS = f"{{{HELD_BY}}}"
_POD = "{{namespace}}/{{pod}}"
_PHASE = f"{_POD} {{{{phase}}}}"
# every pod that holds GPUs, and every pod that counts
_HOLDS = f'group by (namespace, pod) (gpu:engine_active:avg5m{{{HELD_BY},pod!=""}})'
_COUNTS = (
    f"group by (namespace, pod) (namespace_pod:tokens:rate5m{_PODS}"
    f" or namespace_pod:samples:rate5m{_PODS})"
)

NOW = (
    stat(
        "Tokens a second",
        "Of all chosen pods: prompt, generated and trained tokens together.",
        f"sum(namespace_pod:tokens:rate5m{_PODS})",
        decimals=0,
        width=4,
    ),
    stat(
        "Samples a second",
        "Of all chosen pods, in training and inference.",
        f"sum(namespace_pod:samples:rate5m{_PODS})",
        decimals=0,
        width=4,
    ),
    stat(
        "Requests waiting",
        "In the queues of all chosen pods.",
        f"sum(namespace_pod:requests_waiting:sum{_PODS})",
        width=4,
    ),
    stat(
        "Requests running",
        "That all chosen pods work on.",
        f"sum(namespace_pod:requests_running:sum{_PODS})",
        width=4,
    ),
    stat(
        "Without metrics",
        "Pods that hold GPUs and count neither tokens nor samples, as far as Prometheus knows: "
        "docs/applications.md tells how they can.",
        f"count({_HOLDS} unless on (namespace, pod) {_COUNTS}) or vector(0)",
        width=4,
    ),
    stat(
        "On shared GPUs",
        "Pods that hold a MIG instance, or a GPU together with others: a GPU has one power sensor, "
        "so nothing per GPU or joule is known of them.",
        f"count({_HOLDS} unless on (namespace, pod) namespace_pod:gpu_whole:count) or vector(0)",
        width=4,
    ),
)


def _course(title: str, help: str, series: str, legend: str, unit: str = "short") -> Panel:
    return graph(title, help, (series, legend), unit=unit, range=(0, None))


WORK = (
    _course(
        "Tokens a second",
        "By pod and phase, mean of 5 minutes.",
        f"namespace_pod:tokens:rate5m{_PODS}",
        _PHASE,
    ),
    _course(
        "Samples a second",
        "By pod and phase, mean of 5 minutes.",
        f"namespace_pod:samples:rate5m{_PODS}",
        _PHASE,
    ),
    _course(
        "Tokens a second and GPU",
        "What one GPU brings: to compare models, batch sizes and kinds of GPUs. It falls when GPUs "
        "are added that do not help. Only pods that hold whole GPUs alone.",
        f"namespace_pod:tokens_per_gpu:rate5m{_PODS}",
        _PHASE,
    ),
    _course(
        "Samples a second and GPU",
        "As the panel beside it, of what counts samples.",
        f"namespace_pod:samples_per_gpu:rate5m{_PODS}",
        _PHASE,
    ),
    _course(
        "Tokens per joule",
        "Tokens a second for each watt of the pod's GPUs; hosts and cooling not included. An idle "
        "GPU draws power too: few requests make costly tokens.",
        f"namespace_pod:tokens_per_joule:rate5m{_PODS}",
        _PHASE,
    ),
    _course(
        "Samples per joule",
        "As the panel beside it, of what counts samples.",
        f"namespace_pod:samples_per_joule:rate5m{_PODS}",
        _PHASE,
    ),
)
QUEUES = (
    _course(
        "Requests waiting",
        "A queue that grows while the engine is busy needs more GPUs; one that grows while it is "
        "not needs a look at the server.",
        f"namespace_pod:requests_waiting:sum{_PODS}",
        _POD,
    ),
    _course(
        "Requests running",
        "Requests in work at a time: the batch of a server.",
        f"namespace_pod:requests_running:sum{_PODS}",
        _POD,
    ),
)
GPUS = (
    graph(
        "Engine active",
        "Of the GPUs that each pod holds, mean of 2 minutes. High here and low above: the GPU is "
        "busy with something else than what is counted, such as copies or recomputing.",
        (f"namespace_pod:engine_active:avg2m{_PODS}", _POD),
        unit="percentunit",
        range=(0, 1),
    ),
    graph(
        "Power",
        "Of the GPUs that a pod holds alone and whole, mean of 5 minutes.",
        (f"namespace_pod:gpu_whole_power:sum5m{_PODS}", _POD),
        unit="watt",
        range=(0, None),
    ),
)
_PER = "avg by (namespace, pod)"


def _of_pods(title: str, expr: str, decimals: int, unit: str = "short") -> Column:
    return Column(title, expr, unit=unit, decimals=decimals)


TABLE = Panel(
    "table",
    "Pods",
    "Every pod that holds GPUs or counts work, now. Empty cells: the pod does not count that, or "
    "it cannot be known, since its GPUs are shared.",
    columns=(
        Column("Namespace", label="namespace", link="gpu-namespace"),
        Column("Pod", label="pod", link="gpu-profile"),
        _of_pods("GPUs", f"{_PER} (namespace_pod:gpu_whole:count{_PODS})", 0),
        _of_pods("Tokens/s", f"sum by (namespace, pod) (namespace_pod:tokens:rate5m{_PODS})", 1),
        _of_pods(
            "Tokens/s and GPU",
            f"sum by (namespace, pod) (namespace_pod:tokens_per_gpu:rate5m{_PODS})",
            1,
        ),
        _of_pods(
            "Tokens per joule",
            f"sum by (namespace, pod) (namespace_pod:tokens_per_joule:rate5m{_PODS})",
            2,
        ),
        _of_pods("Samples/s", f"sum by (namespace, pod) (namespace_pod:samples:rate5m{_PODS})", 1),
        _of_pods(
            "Samples/s and GPU",
            f"sum by (namespace, pod) (namespace_pod:samples_per_gpu:rate5m{_PODS})",
            1,
        ),
        _of_pods(
            "Samples per joule",
            f"sum by (namespace, pod) (namespace_pod:samples_per_joule:rate5m{_PODS})",
            2,
        ),
        _of_pods("Waiting", f"{_PER} (namespace_pod:requests_waiting:sum{_PODS})", 0),
        _of_pods("Running", f"{_PER} (namespace_pod:requests_running:sum{_PODS})", 0),
        Column(
            "Engine",
            f"{_PER} (namespace_pod:engine_active:avg2m{_PODS})",
            unit="percentunit",
            decimals=0,
            gauge=True,
        ),
    ),
    size=(24, 8),
)

APPLICATIONS = Dashboard(
    "gpu-applications",
    "Applications on GPUs",
    "What pods do with the GPUs they hold: tokens, samples and requests, per GPU and per joule.",
    ("namespace", "pod"),
    (
        Row("Now", (*NOW, TABLE)),
        Row("Work", WORK),
        Row("Queues", QUEUES),
        Row("Their GPUs", GPUS),
    ),
    alerts='namespace=~"$namespace"',
    requires=POD_LABELS,
)
