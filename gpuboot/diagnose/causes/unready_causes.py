"""Why pods that have a node do not start or get ready there, in their kubelet's words.

Sources of the texts: kubernetes v1.36, pkg/kubelet (lifecycle/predicate.go, cm/admission,
kuberuntime/kuberuntime_sandbox.go, images/types.go); containerd v2, internal/cri/server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename

from gpuboot.cluster.objects import Condition
from gpuboot.cluster.pods import Pod
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes import words_causes
from gpuboot.diagnose.causes.pods_causes import failing
from gpuboot.diagnose.facts import RECENT_S, Facts

_NORMAL = ("", "ContainerCreating", "PodInitializing")
_STARTS_S = 120.0  # a pod may take that long
# what an admission adds to a pod's status.reason, beside OutOf and the resource
_REJECTIONS = ("UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "NodePorts")
_REJECTED = "Pod was rejected: "  # how the kubelet's message about any of them begins
_NO_MEANING = re.compile(r'rpc error: code = \w+ desc = | (?:for )?sandbox "[0-9a-f]{6,}"')
_NO_RUNTIME = "no runtime for"
_MAX_LENGTH = 200


def _short(message: str) -> str:
    """A kubelet's message without numbers of calls; where it is long its end, which says why."""
    text = " ".join(_NO_MEANING.sub("", message).split())
    return text if len(text) <= _MAX_LENGTH else f"…{text[-_MAX_LENGTH:]}"


def _unready(facts: Facts) -> Iterator[Pod]:
    """Pods on nodes that are well, which have had the time to get ready."""
    ready_nodes = {node.name for node in facts.cluster.nodes if node.ready}
    now = facts.cluster.now
    for pod in facts.cluster.pods:
        since = max(pod.created, pod.conditions.get("Ready", Condition()).since)
        is_unready = not (pod.ready or pod.finished or pod.going) and pod.node in ready_nodes
        if is_unready and now - since > _STARTS_S:
            yield pod


def pod_sandbox(facts: Facts) -> Iterator[Sighting]:
    """Pods that get no network or no sandbox; which configuration of the network is taken."""
    files = {host.node: sorted(host.details.cni, key=basename) for host in facts.read}
    for pod in _unready(facts):
        events = facts.cluster.events_of(pod.key, "FailedCreatePodSandBox")
        is_set_up = pod.conditions.get("PodReadyToStartContainers", Condition()).status == "True"
        text = events[-1].message if events else ""
        if not text or is_set_up or _NO_RUNTIME in text or words_causes.name_of(text):
            continue
        evidence = [_short(text)]
        if len(names := files.get(pod.node, [])) > 1:
            evidence.append(f"{names[0]} counts, the first of {', '.join(map(basename, names))}")
        now = facts.cluster.present(events[-1].at)
        confidence = Confidence.CERTAIN if now else Confidence.LIKELY
        yield Sighting(node=pod.node, pod=pod.key, evidence=tuple(evidence), confidence=confidence)


def is_rejected(pod: Pod) -> bool:
    """Whether its kubelet has not taken it, for whatever reason."""
    by_reason = pod.reason in _REJECTIONS or pod.reason.startswith("OutOf")
    return by_reason or pod.message.startswith(_REJECTED)


def pod_rejected(facts: Facts) -> Iterator[Sighting]:
    """Pods that a kubelet has not taken: nobody tries them again."""
    for pod in facts.cluster.pods:
        at = max([pod.created, *(condition.since for condition in pod.conditions.values())])
        if pod.phase == "Failed" and is_rejected(pod) and facts.cluster.now - at < RECENT_S:
            yield Sighting(
                node=pod.node,
                pod=pod.key,
                evidence=(f"{pod.reason}: {_short(pod.message)}",),
                # who owns it may have made another by now
                confidence=Confidence.LIKELY if pod.owner else Confidence.CERTAIN,
            )


def pod_not_ready(facts: Facts) -> Iterator[Sighting]:
    """Pods that other causes say nothing of: what their containers wait for, or the last event."""
    for pod in _unready(facts):
        waits = [item for item in pod.containers if item.reason not in _NORMAL and not item.ready]
        images = [item for item in waits if item.reason.endswith("ImagePull")]
        if failing(facts, pod) or images or any("BackOff" in item.reason for item in waits):
            continue
        evidence = [
            f"container {item.name}: {item.reason}: {_short(item.message)}" for item in waits
        ]
        evidence += [
            f"container {item.name} has run for {facts.cluster.now - item.started:.0f} s, and "
            "others wait for its end"
            for item in pod.containers
            if item.state == "running" and pod.phase == "Pending"
        ]
        evidence += [_short(item.message) for item in facts.cluster.events_of(pod.key)[-1:]]
        ready = pod.conditions.get("Ready", Condition())
        yield Sighting(
            node=pod.node,
            pod=pod.key,
            evidence=tuple(dict.fromkeys(evidence)) or (ready.message or f"it is {pod.phase}",),
            confidence=Confidence.LIKELY if waits else Confidence.POSSIBLE,
        )


_BELOW = ("coredns-not-ready", "device-plugin-missing", "prometheus-target-down", "prometheus-down")
_DESCRIBE = "kubectl -n {namespace} describe pod {name}"

TABLE = (
    Cause(
        id="pod-sandbox",
        meaning="a pod gets no network on its node, or its pause container does not start",
        find=pod_sandbox,
        remedy="do what the message asks for. A file of another network in /etc/cni/net.d counts "
        "before flannel's if its name sorts before that: move it away. Without "
        "/run/flannel/subnet.env flannel does not run there; where cni0 has another address, "
        "delete that link and then the node's pods",
        command="ls /etc/cni/net.d /opt/cni/bin; cat /run/flannel/subnet.env; ip route",
        on="node",
        explains=("pod-not-ready", *_BELOW),
    ),
    Cause(
        id="pod-rejected",
        meaning="a kubelet has refused a pod that was already on its node: it offered less by then",
        find=pod_rejected,
        remedy="delete the pod, which nobody tries again; its owner makes another. Where devices "
        "were missing: the node had just booted, its device plugin was starting, or a GPU is gone. "
        "Topology: ask for what fits one NUMA node, or loosen topologyManagerPolicy",
        command=_DESCRIBE,
    ),
    Cause(
        id="pod-not-ready",
        meaning="a pod is not ready, and no cause is known",
        find=pod_not_ready,
        remedy="read what its kubelet says of it: a file that is not there, a user that is not "
        "allowed, a probe that fails",
        command=_DESCRIBE,
        fallback=True,
        explains=_BELOW,
    ),
)
