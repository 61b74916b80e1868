"""What a population's node offers to pods, and its node object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.populations.model import Population


def devices(population: Population, missing_cards: frozenset[int] = frozenset()) -> dict[str, str]:
    """UUID of all that a pod can hold -> the resource that it is offered as."""
    resources = {
        card.uuid: population.advertised
        for card in population.undivided
        if card.index not in missing_cards
    }
    if population.strategy == "single":
        resources = {}
    for card, instance in population.instances:
        if card.index not in missing_cards:
            mixed = population.strategy == "mixed"
            resources[instance.uuid] = instance.resource if mixed else "nvidia.com/gpu"
    return resources


def allocatable(
    population: Population, missing_cards: frozenset[int] = frozenset()
) -> dict[str, str]:
    """What the device plugin offers."""
    advertised = list(devices(population, missing_cards).values())
    shares = population.shares
    counts = {name: str(advertised.count(name) * shares) for name in dict.fromkeys(advertised)}
    # a plugin that served whole GPUs before leaves their resource behind
    keeps_zero = population.strategy == "mixed" or population.advertised != "nvidia.com/gpu"
    return {"nvidia.com/gpu": "0"} | counts if keeps_zero else counts


def node_object(
    population: Population, advertised: Mapping[str, str] | None = None
) -> dict[str, Any]:
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
            "allocatable": {"cpu": "64", **(capacity if advertised is None else advertised)},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2"},
        },
    }
