"""What the upgrade of a node changes and costs, as plans and run.json tell it."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyinfra.context import host

from deploys.engine import changes, planned_drains, planned_packages
from deploys.engine.commands import executing
from deploys.engine.remote import read_fact
from deploys.parts.cluster.node_drain import Moving
from deploys.parts.cluster.pods_fact import GpuPods
from deploys.parts.kubeadm.change_operations import KUBELET
from deploys.parts.nodes.node_parts import Parts, missing
from gpuboot.cluster.node_upgrade import Difference
from gpuboot.hosts.package_changes import package_changes
from gpuboot.plan import Change, Effect, Item


def move_of_pods(
    moving: Moving | None, differences: Difference, shares: bool = False
) -> dict[str, Any]:
    """How pods are moved away: arguments of `drain`; nothing: they stay.

    + shares: its GPUs come to be shared otherwise
    """
    if moving is None or moving.drain == "never":
        return {}
    return moving.moved() if shares or differences.drained(moving.drain) else {}


def record(
    node: str,
    leader: str,
    parts: Parts,
    differences: Difference,
    moved: Mapping[str, Any],
    labels: Mapping[str, str | None],
) -> None:
    """Record it on the current host.

    + node: its name in Kubernetes; leader: inventory name of the leader
    + moved: how its pods are moved to other nodes before; nothing: they stay
    + labels: those by which its GPUs come to be shared otherwise; None: taken away
    """
    planned_packages.note_packages(missing(parts, differences))
    planned_drains.note_drain(node, host.name, moved, shares=bool(labels))
    drained = bool(moved)
    target = f"node {node}"
    changes.record(
        *package_changes(differences.installed, differences.packages),
        *_other_changes(target, parts, differences),
        *(Change(subject=target, field=f"label {name}", new=labels[name]) for name in labels),
        Effect(kind="cordon", target=target, note="no new pods until it is proven"),
        *([KUBELET] if differences.kubelet_due else []),
    )
    busy = _gpu_pods(node, leader) if drained or differences.ends_gpu_pods else ()
    if drained:
        note = planned_drains.note_of(node)
        changes.record(Effect(kind="drain", target=target, note=note, gpu_pods=busy))
    if differences.module:
        note = "drained before" if drained else "its pods stop, and start again after the boot"
        pods = () if drained else busy
        changes.record(Effect(kind="reboot", target=target, note=note, gpu_pods=pods))


def _other_changes(target: str, parts: Parts, differences: Difference) -> Iterator[Item]:
    if differences.loaded != differences.version:
        old = differences.loaded or None
        yield Change(subject="NVIDIA driver", field="loaded", old=old, new=differences.version)
    if differences.kubelet_due and parts.kubelet:
        old, new = differences.installed.get("kubelet"), parts.kubelet.version
        yield Change(subject=f"kubelet of {target}", field="Kubernetes", old=old, new=new)
    if not differences:
        yield Change(subject=target, field="upgrade", old="not proven", new="proven")


def _gpu_pods(node: str, leader: str) -> tuple[str, ...] | None:
    """Pods that hold GPUs of the node, for a plan; None: not known."""
    leader_host = host.state.inventory.hosts.get(leader)
    if leader_host is None or executing():
        return None
    return read_fact(leader_host, GpuPods, node=node)
