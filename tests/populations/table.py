"""The table of populations: every kind of GPU that verdicts and alerts are tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuboot.telemetry import BY_NAME
from tests.populations import ampere, hopper, limited_gpus
from tests.populations.model import REQUESTED_FIELDS, Population, Values
from tests.populations.sources import HEALTHY


def with_new_counters(kinds: Sequence[Population]) -> list[Population]:
    """The kinds; a counter of which none of them has a value is 0 on those that do not lack it."""
    valued = {field for kind in kinds for group in (*kind.idle, *kind.busy) for field in group.of}
    counters = [field for field in REQUESTED_FIELDS if BY_NAME[field].kind == "counter"]
    new_counters = [field for field in counters if field not in valued]
    completed = []
    for kind in kinds:
        absent = {field for lack in kind.lacks for field in lack.fields}
        zeroes = dict.fromkeys((field for field in new_counters if field not in absent), 0.0)
        idle = (*kind.idle, Values(HEALTHY, zeroes)) if zeroes else kind.idle
        completed.append(replace(kind, idle=idle))
    return completed


POPULATIONS: dict[str, Population] = {
    population.name: population
    for population in with_new_counters(
        (*ampere.POPULATIONS, *hopper.POPULATIONS, *limited_gpus.POPULATIONS)
    )
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
