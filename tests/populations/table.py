"""The table of populations: every kind of GPU that verdicts and alerts are tried on."""

from __future__ import annotations

from dataclasses import replace

from tests.populations import ampere, hopper, limited_gpus
from tests.populations.model import Population

POPULATIONS: dict[str, Population] = {
    population.name: population
    for population in (*ampere.POPULATIONS, *hopper.POPULATIONS, *limited_gpus.POPULATIONS)
}

# Four pods share a GPU: by gpuboot's own setting, and by a plugin that renames what it shares.
SLICED, RENAMED = (
    replace(
        limited_gpus.T4,
        name=name,
        cards=(
            replace(limited_gpus.T4.cards[0], uuid=f"GPU-5a1e0600-5157-4c6c-8abc-{number:012}"),
        ),
        shares=4,
        advertised=resource,
    )
    for number, (name, resource) in enumerate(
        [("t4-sliced", "nvidia.com/gpu"), ("t4-renamed", "nvidia.com/gpu.shared")]
    )
)
SHARED = (SLICED, RENAMED)
