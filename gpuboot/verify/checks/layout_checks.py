"""What a node should offer for its GPUs and MIG devices, and layouts that cannot be offered.

The device plugin's rules: k8s-device-plugin v0.20.0, internal/rm/device_map.go
(buildDeviceMapFromConfigResources, assertAllMigDevicesAreValid) and internal/rm/rm.go
(AddDefaultResourcesToConfig). It offers nothing at all on a node whose layout breaks them.
"""

from __future__ import annotations

from collections import Counter

from gpuboot.verify.checks.remedies import CLUSTER, Remedies
from gpuboot.verify.devices import GPU_RESOURCE, Host, MigStrategy


def expected_resources(host: Host, slices: int, strategy: MigStrategy) -> dict[str, int]:
    """Resource -> how many of it the node should offer.

    + slices: `settings.gpu_operator.time_slices`; what is said of the node itself wins over it

    Whole GPUs are counted by the inventory's promise, MIG devices by what the host has.
    """
    with_mig = [gpu for gpu in host.gpus if gpu.mig] if strategy != "none" else []
    counts = Counter({GPU_RESOURCE: host.expected_gpus - len(with_mig)})
    for gpu in with_mig:
        for item in gpu.instances:
            counts[item.resource if strategy == "mixed" else GPU_RESOURCE] += 1
    return {name: count * host.shared(name, slices) for name, count in counts.items() if count}


def other_layout(host: Host, remedies: Remedies = CLUSTER) -> tuple[str, str] | None:
    """How its MIG instances differ from those of the settings, and the remedy; None: they do not.

    They are counted by the UUIDs that nvidia-smi lists.
    """
    if host.layout is None:
        return None
    have = Counter(item.profile for gpu in host.working for item in gpu.instances)
    differences = [
        f"{have[profile]} of {host.layout.get(profile, 0)} {profile}"
        for profile in sorted({*have, *host.layout})
        if have[profile] != host.layout.get(profile, 0)
    ]
    if not differences:
        return None
    return (
        f"its MIG instances are not those of the settings: {', '.join(differences)}",
        remedies.mig_layout,
    )


def unsupported_layout(host: Host, strategy: MigStrategy) -> tuple[str, str] | None:
    """Why the device plugin can offer nothing on this node, and the remedy; None: it can."""
    instances = [item for gpu in host.gpus for item in gpu.instances]
    if strategy == "mixed":
        parts = sorted({item.profile for item in instances if item.partial_compute})
        if parts:
            return (
                f"the device plugin knows no MIG profile {', '.join(parts)} and offers nothing",
                "make each GPU instance one compute instance (`nvidia-smi mig -cgi … -C`)",
            )
    if strategy != "single" or not any(gpu.mig for gpu in host.gpus):
        return None
    profiles = sorted({item.profile for item in instances})
    reason = ""
    if len(profiles) > 1:
        reason = f"it has {' and '.join(profiles)}"
    elif host.unpartitioned:
        reason = f"{', '.join(gpu.uuid for gpu in host.unpartitioned)} has no MIG instance"
    elif any(not gpu.mig for gpu in host.working):
        reason = "MIG is on for some GPUs and off for others"
    remedy = "partition all GPUs of the node alike, or set gpu_operator.mig_strategy = 'mixed'"
    return (
        (f"the MIG strategy single needs one profile on all GPUs: {reason}", remedy)
        if reason
        else None
    )
