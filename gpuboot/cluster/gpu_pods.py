"""Pods that were given GPUs, as the API's JSON has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]

FINISHED_PHASES = ("Succeeded", "Failed")
_PREFIX = "nvidia.com/"


def gpus(pod: Json) -> int:
    """How many GPUs, or parts of some, a pod was given.

    The sum of its containers, or one init container's where that is more. Extended resources have
    limits = requests.
    """
    spec = pod["spec"]
    together = sum(map(_limits, spec.get("containers") or ()))
    return max([together, *map(_limits, spec.get("initContainers") or ())])


def _limits(container: Json) -> int:
    limits: Mapping[str, Any] = container.get("resources", {}).get("limits") or {}
    return sum(int(count) for name, count in limits.items() if name.startswith(_PREFIX))


def holding(pods: Iterable[Json]) -> list[str]:
    """Those of a node's pods that hold GPUs, as namespace/name.

    A kubelet gives a pod its GPUs before its first container starts, and takes them back when the
    last one has ended: a pod that is starting or ending holds them as well.
    """
    return [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in pods
        if pod.get("status", {}).get("phase") not in FINISHED_PHASES and gpus(pod)
    ]
