"""How the GPUs of nodes are shared: which settings hold for a node, and what it then offers.

A node offers `nvidia.com/gpu` for each pod that may hold a whole GPU, or, under the MIG strategy
`single`, an instance; under `mixed` an instance is offered by its profile, `nvidia.com/mig-1g.10gb`
(k8s-device-plugin v0.20.0, internal/rm/rm.go, AddDefaultResourcesToConfig).
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import yaml

from gpuboot.config.inventory import Node
from gpuboot.config.settings import MigPart, Settings, Share
from gpuboot.hosts import driver_mig, mig_profiles
from gpuboot.hosts.driver_mig import DriverProfiles
from gpuboot.hosts.mig_profiles import Counts

GPU = "nvidia.com/gpu"
MIG_LABEL = "nvidia.com/mig.config"
MIG_STATE = f"{MIG_LABEL}.state"
PLUGIN_LABEL = "nvidia.com/device-plugin.config"
# how names of configurations of ours begin, so that a label of somebody else stays
_CONFIG_PREFIXES = ("time-slices-", "mps-", "whole-")
DISABLED = mig_profiles.DISABLED


def of(node: Node, settings: Settings) -> Share | None:
    """What `settings.sharing` says of a node; None: nothing."""
    shares = settings.sharing
    names = [node.host, node.name, *(name for name in shares if name in node.groups)]
    return next((shares[name] for name in names if name in shares), None)


def layout(node: Node, settings: Settings) -> str:
    """The MIG layout that a node's GPUs are to have; "" where the settings name none."""
    share = of(node, settings)
    return (share.mig or "") if share else ""


def replicas(node: Node, settings: Settings) -> int:
    """How many pods may hold the same GPU or MIG instance of a node."""
    if not settings.gpu_operator.enabled:
        return 1
    share = of(node, settings)
    return share.replicas if share else settings.gpu_operator.time_slices


def most_replicas(settings: Settings) -> int:
    """The largest number of pods that may hold one GPU anywhere."""
    shares = settings.sharing.values()
    return max([settings.gpu_operator.time_slices, *(item.replicas for item in shares)])


@dataclass(frozen=True)
class Offer:
    """What a node is to offer, and the labels that make it so.

    + resources: resource -> how many of it
    + labels: label -> value; None: it must not be there
    + foreign: with no layout of ours, MIG instances made by others change what it offers
    + counted: `resources` is all of it; False: its driver has yet to say how many instances a
      layout makes, and any number is right
    """

    resources: Mapping[str, int]
    labels: Mapping[str, str | None] = field(default_factory=dict)
    foreign: bool = True
    counted: bool = True


def offer(
    node: Node,
    settings: Settings,
    devices: Sequence[int] = (),
    driver: DriverProfiles | None = None,
) -> Offer:
    """What a node is to offer.

    + devices: PCI device ids of its GPUs; nothing where they are not known, or not needed
    + driver: the MIG profiles that its driver has, where that was asked
    """
    share = of(node, settings)
    if share is None:
        return Offer({GPU: node.gpus * replicas(node, settings)})
    labels: dict[str, str | None] = {PLUGIN_LABEL: plugin_config(share, settings)[0]}
    if share.mig is None:
        return Offer({GPU: node.gpus * share.replicas}, labels)
    labels[MIG_LABEL] = layout_label(share.mig, settings)
    instances_by_gpu = per_gpu(share.mig, settings, node.gpus, devices, driver)
    known_instances = [instances for instances in instances_by_gpu if instances is not None]
    counts = _resources(known_instances, settings.gpu_operator.mig_strategy)
    resources = {name: n * share.replicas for name, n in counts.items()}
    return Offer(
        resources, labels, foreign=False, counted=len(known_instances) == len(instances_by_gpu)
    )


def _resources(gpus: Sequence[Mapping[str, int]], strategy: str) -> Counter[str]:
    counts = Counter[str]()
    for instances in gpus:
        if not instances or strategy == "none":
            counts[GPU] += 1
        for profile, count in instances.items():
            counts[resource(profile) if strategy == "mixed" else GPU] += count
    return counts


def resource(profile: str) -> str:
    """The resource of a MIG profile under the strategy `mixed`."""
    return "nvidia.com/mig-" + profile.replace("+", ".")


def per_gpu(
    layout: str,
    settings: Settings,
    gpus: int,
    devices: Sequence[int],
    driver: DriverProfiles | None = None,
) -> list[Counts | None]:
    """The MIG instances of each GPU. Nothing for one that stays whole; None: its driver knows.

    + devices: PCI device ids of the GPUs; driver: as of `offer`
    """
    instances_by_gpu: list[Counts | None] = [{} for _ in range(gpus)]
    if layout in settings.mig_layouts:
        for part in settings.mig_layouts[layout]:
            for index in indices(part, gpus):
                instances_by_gpu[index] = part.instances
        return instances_by_gpu
    if layout == DISABLED:
        return instances_by_gpu
    return [
        _of_driver(layout, driver_mig.counts(device, driver or {})) for device in devices
    ] or instances_by_gpu


def _of_driver(layout: str, profiles: Counts | None) -> Counts | None:
    return None if profiles is None else mig_profiles.made_of(layout, profiles) or {}


def indices(part: MigPart, gpus: int) -> list[int]:
    """The GPUs of a node that a part of a layout is about, of those that are there."""
    selected = range(gpus) if part.gpus == "all" else part.gpus
    return [index for index in selected if index < gpus]


def layout_label(layout: str, settings: Settings) -> str:
    """The value of the label `nvidia.com/mig.config` for a layout.

    A layout of the settings has its content in its name: the MIG manager looks at its
    configuration when the label changes, and at no other time.
    """
    if layout not in settings.mig_layouts:
        return layout
    text = repr([part.model_dump() for part in settings.mig_layouts[layout]])
    return f"{layout}-{_digest(text)}"


def plugin_config(share: Share | None, settings: Settings) -> tuple[str, str]:
    """Name and content of the device plugin's configuration for nodes that are shared so.

    config-manager (k8s-device-plugin v0.20.0, cmd/config-manager/main.go:273) looks at its files
    when a label of the node changes, and at no other time: another content has another name.

    + share: None for nodes of which `settings.sharing` says nothing
    """
    operator = settings.gpu_operator
    share = share or Share(time_slices=operator.time_slices)
    by = "mps" if share.mps > 1 else "time-slices"
    key = "mps" if share.mps > 1 else "timeSlicing"
    config: dict[str, object] = {
        "version": "v1",
        "flags": {"migStrategy": operator.mig_strategy},
    }
    if share.replicas > 1:
        parts = [{"name": name, "replicas": share.replicas} for name in _shared(share, settings)]
        sharing: dict[str, object] = {"renameByDefault": False}
        if share.one_per_pod or share.mps > 1:
            sharing["failRequestsGreaterThanOne"] = True
        config["sharing"] = {key: {**sharing, "resources": parts}}
    text = yaml.safe_dump(config, sort_keys=False)
    name = f"{by}-{share.replicas}" if share.replicas > 1 else "whole"
    return f"{name}-{_digest(text)}", text


def _shared(share: Share, settings: Settings) -> list[str]:
    """The resources that several pods may hold: under `mixed` each profile is one of its own."""
    if not share.mig or settings.gpu_operator.mig_strategy != "mixed":
        return [GPU]
    if mig_profiles.is_of_one_profile(share.mig):
        return [GPU, resource(share.mig.removeprefix("all-"))]
    layouts: list[Counts] = [counts for _, counts in mig_profiles.of_all(share.mig)]
    layouts += [part.instances for part in settings.mig_layouts.get(share.mig, ())]
    profiles = sorted({profile for counts in layouts for profile in counts})
    return [GPU, *map(resource, profiles)]


def is_ours(value: str) -> bool:
    """Whether a value of the device plugin's label is one that gpuboot gives."""
    return value.startswith(_CONFIG_PREFIXES)


class ExpectedShare(TypedDict):
    """What the settings say of a node itself: fields of `verify.devices.Host`."""

    replicas: int | None
    layout: dict[str, int] | None


def expected_share(
    node: Node, settings: Settings, devices: Sequence[int], driver: DriverProfiles | None = None
) -> ExpectedShare:
    """What the proof compares a node with. + devices, driver: as of `offer`"""
    share = of(node, settings)
    if share is None:
        return {"replicas": None, "layout": None}
    if share.mig is None:
        return {"replicas": share.replicas, "layout": None}
    instances = Counter[str]()
    for counts in per_gpu(share.mig, settings, node.gpus, devices, driver):
        if counts is None:
            return {"replicas": share.replicas, "layout": None}
        instances.update(counts)
    return {"replicas": share.replicas, "layout": dict(instances)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
