"""MIG devices, as nvidia-smi (`-L` and `-q` together) and a node's labels tell them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

MIG_PREFIX = "nvidia.com/mig-"

# GPU 0: NVIDIA H200 (UUID: GPU-…)
_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[0-9a-f-]+)\)")
# MIG 1g.18gb     Device  3: (UUID: MIG-…); up to driver 460 MIG-GPU-<UUID>/<GI>/<CI>
_DEVICE = re.compile(r"MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)\s]+)\)")
_OLD_UUID = re.compile(r"MIG-GPU-[0-9a-f-]+/(\d+)/(\d+)")
_BUS = re.compile(r"GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_NUMBER = re.compile(r"(Index|GPU Instance ID|Compute Instance ID)\s*:\s*(\d+)")

_PROFILE, _UNDIVIDED = "nvidia.com/mig.config", "all-disabled"
_PRODUCT = "nvidia.com/gpu.product"

InstanceIds = Mapping[tuple[str, int], tuple[int, int]]  # (bus id, index) -> (GI, CI)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A MIG device: a compute instance of a GPU instance.

    + uuid: `MIG-…`
    + profile: as nvidia-smi spells it, e.g. `1g.10gb`, `1g.10gb+me`, `1c.3g.71gb`
    + gi, ci: ids of its GPU instance and compute instance; None when nvidia-smi did not tell
    """

    uuid: str
    profile: str
    index: int
    gi: int | None = None
    ci: int | None = None

    @property
    def resource(self) -> str:
        """The device plugin's name for it under the strategy `mixed`.

        k8s-device-plugin v0.20.0, internal/rm/rm.go, AddDefaultResourcesToConfig.
        """
        return MIG_PREFIX + self.profile.replace("+", ".")

    @property
    def partial_compute(self) -> bool:
        """Whether it has only some of its GPU instance's compute (`1c.3g.71gb`)."""
        return "c." in self.profile


def parse_list(lines: Iterable[str]) -> dict[str, tuple[Instance, ...]]:
    """UUID of each GPU that `nvidia-smi -L` lists -> its MIG devices, without their ids."""
    instances: dict[str, list[Instance]] = {}
    gpu = ""
    for line in lines:
        if head := _GPU.match(line):
            gpu = head[1]
            instances[gpu] = []
        elif (device := _DEVICE.match(line)) and gpu:
            instances[gpu].append(_instance(*device.groups()))
    return {uuid: tuple(items) for uuid, items in instances.items()}


def _instance(profile: str, index: str, uuid: str) -> Instance:
    old = _OLD_UUID.fullmatch(uuid)
    gi, ci = (int(old[1]), int(old[2])) if old else (None, None)
    return Instance(uuid=uuid, profile=profile, index=int(index), gi=gi, ci=ci)


def parse_ids(lines: Iterable[str]) -> InstanceIds:
    """GPU instance and compute instance of each MIG device, from lines of `nvidia-smi -q`."""
    ids: dict[tuple[str, int], tuple[int, int]] = {}
    bus, numbers = "", dict[str, int]()
    for line in lines:
        if head := _BUS.match(line):
            bus, numbers = head[1], {}
        elif number := _NUMBER.match(line):
            numbers[number[1]] = int(number[2])
            if number[1] == "Compute Instance ID" and len(numbers) == 3:
                key = bus, numbers["Index"]
                ids[key] = numbers["GPU Instance ID"], numbers["Compute Instance ID"]
                numbers = {}
    return ids


def with_ids(
    instances: Iterable[Instance], bus: str, known_ids: InstanceIds
) -> tuple[Instance, ...]:
    """A GPU's MIG devices, with their ids where `nvidia-smi -q` told them."""
    return tuple(
        replace(item, gi=known_ids[bus, item.index][0], ci=known_ids[bus, item.index][1])
        if (bus, item.index) in known_ids
        else item
        for item in instances
    )


def uses_mig(labels: Mapping[str, str], offered_counts: Mapping[str, str | int]) -> bool:
    """Whether MIG divides GPUs of a node, by the MIG manager or by hand.

    + labels: the node's
    + offered_counts: what it offers, by resource

    By hand there is no profile, but GPU feature discovery names the product after its slices
    (k8s-device-plugin v0.20.0, internal/lm/mig-strategy.go), or the slices are resources.
    """
    return (
        labels.get(_PROFILE, _UNDIVIDED) not in (_UNDIVIDED, "")
        or "-MIG-" in labels.get(_PRODUCT, "")
        or any(
            name.startswith(MIG_PREFIX) and int(count) > 0 for name, count in offered_counts.items()
        )
    )
