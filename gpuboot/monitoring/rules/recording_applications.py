"""Recording rules that join what applications count with the GPUs that their pods hold.

The convention is docs/applications.md. Names of others are taken as well where they mean the same:
vLLM's (vllm/v1/metrics/loggers.py) and Triton's (core, src/metrics.cc).

A GPU that pods share, by MIG, time-slicing or MPS, has one power sensor and one set of counters. No
arithmetic tells whose watts they are, so a pod that holds a part of any GPU has nothing per GPU and
nothing per joule.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.monitoring.rules.promql import non_blank, now_and, shown_by_exporter
from gpuboot.monitoring.rules.record import Record
from gpuboot.monitoring.rules.requirements import Requirement

POD = "namespace, pod"
_HAS_POD = 'pod!=""'
_WINDOW = "5m"
# One target may be found by two scrape jobs, which tell it by the same `instance`; a pod with a
# process for each GPU has several targets, and they add up.
_ONCE = "max without (job, endpoint, container, service, app)"
# Series of applications, and the phase that they count; "": the label `phase` tells
_COUNTED = {
    "tokens": (
        ("ml_tokens_total", ""),
        ("vllm:generation_tokens_total", "generation"),
        ("vllm:prompt_tokens_total", "prompt"),
    ),
    "samples": (("ml_samples_total", ""), ("nv_inference_count", "inference")),
}
_REQUESTS = {
    "waiting": (
        "ml_requests_waiting",
        "vllm:num_requests_waiting",
        "nv_inference_pending_request_count",
    ),
    "running": ("ml_requests_running", "vllm:num_requests_running"),
}
WHOLE_GPUS, POWER = "namespace_pod:gpu_whole:count", "namespace_pod:gpu_whole_power:sum5m"


def applications() -> list[Record]:
    """What pods do, per GPU and per joule."""
    return [
        Record(name, expr, meaning, requires=Requirement.POD_LABELS)
        for name, expr, meaning in (*_gpus(), *_requests(), *_work())
    ]


def _gpus() -> Iterator[tuple[str, str, str]]:
    per_gpu = shown_by_exporter(f"{POD}, node, UUID", _HAS_POD)
    parts = shown_by_exporter(POD, f'{_HAS_POD}, GPU_I_ID!=""')
    yield (
        WHOLE_GPUS,
        f"count by ({POD}) ({per_gpu})\n"
        f"unless on ({POD}) ({parts})\n"
        f"unless on ({POD}) (\n  {per_gpu}\n"
        f"  and on (node, UUID) (count by (node, UUID) ({per_gpu}) > 1)\n)",
        "GPUs that a pod holds, where it holds all of them alone and whole; absent for a pod with "
        "a MIG instance, or with a GPU that another pod holds as well.",
    )
    watts = now_and("avg_over_time", "DCGM_FI_DEV_POWER_USAGE", _HAS_POD, _WINDOW)
    each_watts = f"max by ({POD}, node, UUID) ({watts})"
    yield (
        POWER,
        f"sum by ({POD}) ({each_watts})\n"
        f"and on ({POD}) (count by ({POD}) ({each_watts}) == on ({POD}) {WHOLE_GPUS})",
        "Power draw of the GPUs that a pod holds alone and whole, mean of 5 minutes, in W; absent "
        "where one of them does not tell its power.",
    )


def _requests() -> Iterator[tuple[str, str, str]]:
    meanings = {"waiting": "wait in the pod's queue", "running": "the pod works on"}
    for state, names in _REQUESTS.items():
        parts = (f"sum by ({POD}) ({_ONCE} ({non_blank(name, _HAS_POD)}))" for name in names)
        yield (
            f"namespace_pod:requests_{state}:sum",
            "\nor ".join(parts),
            f"Requests that {meanings[state]}.",
        )


def _work() -> Iterator[tuple[str, str, str]]:
    for unit, sources in _COUNTED.items():
        rate = f"namespace_pod:{unit}:rate5m"
        yield (
            rate,
            "\nor ".join(_rate(metric, phase) for metric, phase in sources),
            f"{unit.capitalize()} a second that the pod processes, by phase, over 5 minutes.",
        )
        yield (
            f"namespace_pod:{unit}_per_gpu:rate5m",
            f"{rate} / on ({POD}) group_left () {WHOLE_GPUS}",
            f"{unit.capitalize()} a second and GPU; absent for pods with a part of a GPU.",
        )
        yield (
            f"namespace_pod:{unit}_per_joule:rate5m",
            f"{rate} / on ({POD}) group_left () ({POWER} > 0)",
            f"{unit.capitalize()} a second and watt, which is {unit} per joule of the pod's GPUs; "
            "absent for pods with a part of a GPU.",
        )


def _rate(metric: str, phase: str) -> str:
    """Rise per second of a counter, of pods that are there now, with the label `phase`."""
    series = f"{metric}{{{_HAS_POD}}}"
    rise = f"{_ONCE} (rate({series}[{_WINDOW}]) and {series})"
    if not phase:
        return f"sum by ({POD}, phase) ({rise})"
    return f'label_replace(sum by ({POD}) ({rise}), "phase", "{phase}", "", "")'
