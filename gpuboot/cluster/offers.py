"""What GPU nodes offer to pods beside what they are to offer, and labels that make it so."""

from collections.abc import Mapping

from gpuboot.cluster.objects import Node
from gpuboot.hosts import gpu_sharing
from gpuboot.hosts.gpu_sharing import Offer

_APPLIED, _GIVEN_UP = "success", "failed"
_PREFIXES = ("nvidia.com/gpu", "nvidia.com/mig-")


def offered_resources(node: Node) -> dict[str, int]:
    """What a node offers of GPUs and MIG instances: resource -> how many, of those above 0."""
    counts = {
        name: int(count) for name, count in node.allocatable.items() if name.startswith(_PREFIXES)
    }
    return {name: count for name, count in counts.items() if count}


def has_offered(node: Node) -> bool:
    """Whether a node offers GPUs or MIG instances, or has: a restart of the device plugin makes
    the numbers 0, and the names of the resources stay.
    """
    return any(name.startswith(_PREFIXES) for name in node.allocatable)


def offer_problem(node: Node | None, offer: Offer) -> str:
    """Why a node does not offer what it is to offer; "" when it does."""
    if node is None:
        return "no node of the cluster"
    if changed := _differing(node.labels, offer):
        return "its labels are not set: " + ", ".join(changed)
    layout, state = (
        offer.labels.get(gpu_sharing.MIG_LABEL),
        node.labels.get(gpu_sharing.MIG_STATE, "none"),
    )
    if layout and state != _APPLIED:
        return f"MIG layout {layout}: {state}"
    have = offered_resources(node)
    if not offer.counted:
        return "" if have else "no GPU and no MIG instance"
    shortfalls = [
        f"{have.get(name, 0)} of {offer.resources.get(name, 0)} {name}"
        for name in sorted({*have, *offer.resources})
        if have.get(name, 0) != offer.resources.get(name, 0)
    ]
    return ", ".join(shortfalls)


def given_up(labels: Mapping[str, str], offer: Offer) -> bool:
    """Whether the MIG manager has failed to make the layout that a node asks for."""
    layout = offer.labels.get(gpu_sharing.MIG_LABEL)
    is_requested = layout is not None and labels.get(gpu_sharing.MIG_LABEL) == layout
    return is_requested and labels.get(gpu_sharing.MIG_STATE) == _GIVEN_UP


def label_changes(labels: Mapping[str, str], offer: Offer) -> dict[str, str | None]:
    """The labels to change on a node, each with its new value; None: taken away.

    A configuration of the device plugin that gpuboot chose goes when the settings name none; one
    that somebody else chose stays, and so does a MIG layout that the settings do not name. What the
    MIG manager said of the layout before goes with it, and so does that it has failed.
    """
    changed = _differing(labels, offer)
    if gpu_sharing.MIG_STATE in labels and (
        gpu_sharing.MIG_LABEL in changed or given_up(labels, offer)
    ):
        changed[gpu_sharing.MIG_STATE] = None
    return changed


def _differing(labels: Mapping[str, str], offer: Offer) -> dict[str, str | None]:
    changed = {name: value for name, value in offer.labels.items() if labels.get(name) != value}
    label = labels.get(gpu_sharing.PLUGIN_LABEL, "")
    if gpu_sharing.PLUGIN_LABEL not in offer.labels and gpu_sharing.is_ours(label):
        changed[gpu_sharing.PLUGIN_LABEL] = None
    return changed
