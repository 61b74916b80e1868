"""What a population's node offers to pods, and its node object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.populations.model import Population


def devices(population: Population, gone: frozenset[int] = frozenset()) -> dict[str, str]:
    """UUID of all that a pod can hold -> the resource that it is offered as."""
    found = {card.uuid: population.offered for card in population.whole if card.index not in gone}
    if population.strategy == "single":
        found = {}
    for card, one in population.instances:
        if card.index not in gone:
            mixed = population.strategy == "mixed"
            found[one.uuid] = one.resource if mixed else "nvidia.com/gpu"
    return found


def allocatable(population: Population, gone: frozenset[int] = frozenset()) -> dict[str, str]:
    """What the device plugin offers."""
    offered = list(devices(population, gone).values())
    shares = population.shares
    found = {name: str(offered.count(name) * shares) for name in dict.fromkeys(offered)}
    # a plugin that served whole GPUs before leaves their resource behind
    left = population.strategy == "mixed" or population.offered != "nvidia.com/gpu"
    return {"nvidia.com/gpu": "0"} | found if left else found


def node_object(population: Population, offered: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The node as the API server has it."""
    capacity = allocatable(population)
    labels = {
        "kubernetes.io/hostname": population.node,
        "kubernetes.io/arch": "amd64",
        "gpuboot.io/gpus": str(len(population.cards)),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(len(population.cards)),
        **population.labels,
    }
    if population.strategy != "none":
        labels["nvidia.com/mig.strategy"] = population.strategy
    return {
        "metadata": {"name": population.node, "labels": labels},
        "spec": {},
        "status": {
            "capacity": {"cpu": "64", **capacity},
            "allocatable": {"cpu": "64", **(capacity if offered is None else offered)},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2"},
        },
    }
