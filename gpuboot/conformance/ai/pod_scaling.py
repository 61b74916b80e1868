"""A HorizontalPodAutoscaler on what GPUs do: a load that ends scales pods up and down again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from gpuboot.cluster.objects import Node
from gpuboot.config.settings import Settings
from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.ai.service import LABELS
from gpuboot.usage.autoscaling import METRIC, Workload, hpa
from gpuboot.verify.load import load_pods
from gpuboot.verify.load.load_pods import LoadRequest

Object = dict[str, Any]

API = "/apis/custom.metrics.k8s.io/v1beta1"
NAME = "scaled"
LOAD_S = 240  # the metric is a mean of two minutes
REPLICAS = 2
TARGET = 0.3
REMEDY = (
    "serve the metric by prometheus-adapter: docs/autoscaling.md, HPA with prometheus-adapter; "
    "then run again"
)


def is_served(answer: Any) -> bool:
    """Whether the API of custom metrics has GPU load. + answer: to `API`; None: there is none"""
    names = {item["name"] for item in (answer or {}).get("resources", ())}
    return f"pods/{METRIC}" in names


def deployment(node: Node, begin_by: int, settings: Settings) -> Object:
    """Pods with a GPU each, which keep it busy for a while after their start, and then rest.

    + node: any that takes GPU pods
    """
    request = LoadRequest(kind="compute", seconds=LOAD_S, gpus=1)
    spec = load_pods.pod(node, 1, request, begin_by, settings)["spec"]
    for key in ("restartPolicy", "activeDeadlineSeconds", "nodeSelector"):
        del spec[key]
    command = spec["containers"][0]["command"]
    command[2] += "exec sleep 86400\n"
    labels = {**LABELS, "app": NAME}
    return {
        "metadata": {"name": NAME, "labels": dict(LABELS)},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def autoscaler(namespace: str) -> Object:
    """The object of `gpuboot autoscaling hpa`, which scales down without delay here."""
    workload = Workload(namespace, NAME, max_replicas=REPLICAS, target=TARGET)
    item = hpa(workload)
    item["spec"]["behavior"]["scaleDown"] = {"stabilizationWindowSeconds": 0}
    return item


def evaluate(counts: Iterable[int], lines: Sequence[str] = ()) -> Result:
    """Whether replicas went up under load and down without.

    + counts: of ready pods, as time went by
    """
    name = "pod_autoscaling"
    steps = [count for count, _ in groupby(counts)]
    lines = (f"ready pods as time went by: {', '.join(map(str, steps))}", *lines)
    peak = max(steps, default=0)
    if peak < REPLICAS:
        summary = f"under load, {peak} of {REPLICAS} pods became ready"
    elif steps[-1] >= REPLICAS:
        summary = "without load, no pod was taken away"
    else:
        summary = f"An HPA on {METRIC} scaled pods with GPUs up under load, and down without."
        return Result(name, "pass", summary, tuple(lines))
    remedy = "`kubectl describe hpa` tells what it knows of the metric; docs/autoscaling.md"
    return Result(name, "fail", summary, tuple(lines), remedy)
