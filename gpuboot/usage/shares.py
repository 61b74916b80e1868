"""What share of a GPU a resource of the scheduler is.

A MIG instance is the larger of its compute slices and its memory slices, each as a share of the
card's: most cards have 7 and 8. Profiles and slices: `gpuboot.hosts.mig_profiles`.
"""

from __future__ import annotations

import re

from gpuboot.hosts import mig_profiles

_PROFILE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.(\d+)gb")
_RESOURCE = re.compile(r"^nvidia[._]com[/_]mig[-_](.+?)(?:[._]shared)?$")
_MEMORY_SLICES = 8
_NAMED_SIZE = re.compile(r"\b(\d+)\s?GB?\b")
# memory slices of the usual profile with so many compute slices, where the card is not known
_USUAL = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


def mig_profile(resource: str) -> str:
    """The MIG profile of a resource, such as `1g.10gb`; "" for whole GPUs.

    + resource: as Kubernetes writes it, or as kube-state-metrics does
    """
    match = _RESOURCE.match(resource)
    return match[1].replace("_", ".") if match else ""


def share(profile: str, model: str = "") -> float:
    """The share of a GPU that an instance is; 1 for whole GPUs and for a text that is no profile.

    + profile: as the exporter's `GPU_I_PROFILE` or `mig_profile` has it; "" for a whole GPU
    + model: the exporter's `modelName`; "" where nobody knows
    """
    match = _PROFILE.match(profile)
    if match is None:
        return 1.0
    slices, gigabytes = int(match[2]), int(match[3])
    size, compute = _card(model)
    memory = round(gigabytes / size * _MEMORY_SLICES) if size else _USUAL.get(slices, slices)
    fraction = min(1.0, max(slices / compute, memory / _MEMORY_SLICES))
    return fraction * int(match[1]) / slices if match[1] else fraction


def _card(model: str) -> tuple[int, int]:
    """A model's memory in GB (0: not known) and compute slices."""
    if card := mig_profiles.of_model(model):
        return card.gigabytes, card.compute
    size_match = _NAMED_SIZE.search(model)
    return (int(size_match[1]) if size_match else 0), 7
