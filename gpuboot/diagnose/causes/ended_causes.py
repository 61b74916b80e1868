"""Pods that were ended from outside, or that do not end although somebody has deleted them.

Sources of the texts: kubernetes v1.36, pkg/kubelet (eviction/helpers.go, preemption, nodeshutdown),
pkg/controller/podgc; containerd v2, core/runtime (OOM events).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboot.cluster.pods import Container, Pod
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes.exporter_causes import is_exporter
from gpuboot.diagnose.causes.pods_causes import how_it_ended
from gpuboot.diagnose.causes.unready_causes import is_rejected
from gpuboot.diagnose.facts import RECENT_S, Facts

_OOM = "OOMKilled"
_NO_START = "container init was OOM-killed"
_GLOBAL_OOM = "Out of memory: Killed"
_ENDS_S = 60.0  # a pod may take that long beyond its grace period


def evicted(facts: Facts) -> Iterator[Sighting]:
    """Pods that their kubelet has ended, or that were over their own time."""
    for pod in facts.cluster.pods:
        at = max([pod.created, *(condition.since for condition in pod.conditions.values())])
        if pod.phase != "Failed" or not pod.reason or is_rejected(pod):
            continue
        if facts.cluster.now - at < RECENT_S:
            yield Sighting(
                node=pod.node,
                pod=pod.key,
                evidence=(f"{pod.reason}: {pod.message}".strip(),),
                # who owns it may have made another by now
                confidence=Confidence.LIKELY if pod.owner else Confidence.CERTAIN,
            )


def _killed(facts: Facts, pod: Pod) -> Container | None:
    """The container of a pod that was killed at its memory limit and is not well since."""
    for container in pod.containers:
        end = container.termination
        if container.ready or end is None or not facts.cluster.ended_lately(container):
            continue
        if end.reason == _OOM or _NO_START in end.message:
            return container
    return None


def out_of_memory(facts: Facts) -> Iterator[Sighting]:
    """Containers that were killed for want of memory; exporters have a cause of their own."""
    hosts = {host.node: host for host in facts.read}
    for pod in facts.cluster.pods:
        if pod.going or is_exporter(pod) or not (container := _killed(facts, pod)):
            continue
        if container.name in pod.default_memory:
            continue
        host = hosts.get(pod.node)
        # the kernel kills containers as well where the whole host has no memory left
        kernel = host.kernel(_GLOBAL_OOM, within_s=RECENT_S) if host else []
        yield Sighting(
            node=pod.node,
            pod=pod.key,
            evidence=(how_it_ended(container), *kernel[-1:]),
            confidence=Confidence.LIKELY if kernel else Confidence.CERTAIN,
        )


def terminating(facts: Facts) -> Iterator[Sighting]:
    """Pods that were deleted and are still there, with what holds them."""
    nodes = {node.name: node for node in facts.cluster.nodes}
    for pod in facts.cluster.pods:
        overdue_s = facts.cluster.now - pod.deleted
        if not pod.going or not pod.deleted or overdue_s < _ENDS_S or not nodes:
            continue
        evidence = [f"it should have ended {overdue_s:.0f} s ago"]
        node = nodes.get(pod.node)
        confidence, command = Confidence.CERTAIN, "kubectl -n {0} describe pod {1}"
        if pod.finalizers:
            evidence.append(f"finalizers: {', '.join(pod.finalizers)}")
            command = "kubectl -n {0} get pod {1} -o jsonpath='{{.metadata.finalizers}}'"
        elif pod.node and node is None:
            evidence.append(f"its node {pod.node} is gone")
            command = "kubectl -n {0} delete pod {1} --grace-period=0 --force"
        elif node and not node.ready:
            evidence.append(f"its node is not Ready: {node.message}")
            command = f"kubectl describe node {pod.node}"
        else:
            confidence = Confidence.LIKELY
            evidence += [item.message for item in facts.cluster.events_of(pod.key)[-1:]]
        yield Sighting(
            node=pod.node if node else "",
            pod=pod.key,
            evidence=tuple(evidence),
            confidence=confidence,
            values={"see": command.format(pod.namespace, pod.name)},
        )


_BELOW = ("device-plugin-missing", "prometheus-down", "prometheus-target-down", "coredns-not-ready")

TABLE = (
    Cause(
        id="pod-evicted",
        meaning="a pod was ended from outside: its node ran short of something, it took more than "
        "it may, or its node was shut down",
        find=evicted,
        remedy="what the message names: memory or ephemeral-storage: see what takes it on the "
        "node, and give pods requests and limits of it; then delete the pod, which only its owner "
        "replaces",
        command="kubectl -n {namespace} describe pod {name}; kubectl describe node {node}",
        explains=_BELOW,
    ),
    Cause(
        id="container-out-of-memory",
        meaning="a container is killed for want of memory, at its own limit or for the whole host",
        find=out_of_memory,
        remedy="raise its memory limit, of gpuboot's parts by the settings of their charts; where "
        "it has none, the node is short of memory",
        command="kubectl -n {namespace} get pod {name} "
        "-o jsonpath='{{.spec.containers[*].resources}}'",
        explains=("operator-crash-loop", "control-plane-part-failing", *_BELOW),
    ),
    Cause(
        id="pod-terminating",
        meaning="a pod was deleted and does not go: it holds its GPUs, ports and volumes",
        find=terminating,
        remedy="with finalizers: their controller has to act, or where that is gone for good a "
        "person takes them off (`kubectl edit`); node gone or off for good: delete the pod by "
        "force, else bring the node back; on a node that is well, see what the kubelet and "
        "containerd say: a volume that is busy, a process that waits for a disk or a GPU",
        command="{see}",
        explains=("pending-resource", "pending-port", "volume-mount", "namespace-terminating"),
    ),
)
