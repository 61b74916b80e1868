"""MIG profiles as a host's driver lists them for its GPUs, whatever `mig_profiles` has of them.

`nvidia-smi mig -lgip` lists them whether MIG is on or not, once for each GPU that MIG can divide.
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

from gpuboot.hosts import mig_profiles
from gpuboot.hosts.fact_output import Fields
from gpuboot.hosts.mig_profiles import Counts

# PCI device id -> profiles, as the driver has them; {}: MIG cannot divide it
DriverProfiles: TypeAlias = Mapping[int, Counts]
_ROW = re.compile(r"\|\s+(\d+)\s+MIG\s+(\S+)\s+\d+\s+\d+/(\d+)\s")
_FINISHED = re.compile(r"exit=0|No MIG-supported devices found\.")


def parse(values: Fields) -> dict[int, Counts]:
    """The profiles of the models on a host; nothing where the driver did not list them.

    + values: `device`: rows of --query-gpu=index,pci.device_id; `profile`: lines of `mig -lgip`
    """
    profile_lines = values.all("profile")
    if not any(map(_FINISHED.fullmatch, profile_lines)):
        return {}
    counts_by_index: dict[str, dict[str, int]] = {}
    for match in filter(None, map(_ROW.match, profile_lines)):
        counts_by_index.setdefault(match[1], {})[match[2]] = int(match[3])
    rows = (row.split(", ") for row in values.all("device") if ", 0x" in row)
    return {int(packed, 16) >> 16: counts_by_index.get(index, {}) for index, packed in rows}


def counts(device: int, driver: DriverProfiles) -> Counts | None:
    """The profiles of a GPU, and how many of each it can have; None: nobody knows.

    + device: its PCI device id; driver: what the host's driver says
    """
    if device in driver:
        return driver[device]
    card = mig_profiles.card(device)
    return card.counts if card else None


def fits(device: int, profiles: Counts, instances: Counts) -> bool:
    """Whether so many instances fit on a GPU; placements are known of models in the table alone.

    + profiles: as `counts` has them
    """
    card = mig_profiles.card(device)
    if card and card.counts == profiles:
        return card.fits(instances)
    maximum = max((mig_profiles.size(name)[0] for name in profiles), default=0)
    slices = sum(mig_profiles.size(name)[0] * count for name, count in instances.items())
    counts_fit = all(count <= profiles.get(name, 0) for name, count in instances.items())
    return counts_fit and slices <= maximum
