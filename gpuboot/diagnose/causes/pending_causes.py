"""Why a pod waits for a node: which of resource, taint, affinity, volume, gate and port.

Sources of the texts: kubernetes v1.36, pkg/scheduler/framework/plugins (each plugin's ErrReason)
and types.go (FitError), schedule_one.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpuboot.cluster.pods import Pod
from gpuboot.diagnose import log_lines
from gpuboot.diagnose.cause_model import Cause, Confidence, Sighting
from gpuboot.diagnose.causes import words_causes
from gpuboot.diagnose.causes.absent_causes import of_refused
from gpuboot.diagnose.facts import Facts

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_COUNT = re.compile(r"^0/(\d+) nodes? (?:is|are) available")
_PART = re.compile(r"(?:^|, )(\d+) (.+?)(?=, \d+ |$)")
_KINDS = {
    "resource": re.compile(r"Insufficient |Too many pods"),
    "taint": re.compile(r"had untolerated taint"),
    "affinity": re.compile(r"affinity|topology spread|node selector|didn't match PreFilter"),
    "volume": re.compile(r"[Vv]olume|persistentvolumeclaim"),
    "claim": re.compile(r"allocate all claims|resource ?claim|device class|allocate devices"),
    "port": re.compile(r"free ports"),
    "cordon": re.compile(r"were unschedulable"),
}
_VOLUME = re.compile(r"PersistentVolumeClaim|persistentvolumeclaim|volume")
# of containers whose images are not even looked for yet
_NOT_BEGUN = ("", "ContainerCreating", "PodInitializing")
_MOUNTS_S = 180.0
_NO_NODES = "no nodes available to schedule pods"


def reasons(message: str, controls: int = 0) -> dict[str, tuple[int, str]]:
    """Kind -> number of nodes, and the scheduler's words, of why no node takes a pod.

    + controls: how many nodes have no taint but a control plane's; from Kubernetes 1.35 on the
      scheduler does not say which taint it was

    Control planes that keep others' pods away are no reason where workers have one of their own.
    """
    text = message.split(" preemption:")[0].split("no new claims to deallocate")[0]
    head, _, remainder = text.partition(": ")
    if text.startswith(_NO_NODES):
        return {"nodes": (0, _NO_NODES)}
    if not _COUNT.match(head):
        return {"volume": (0, text)} if _VOLUME.search(text) else {}
    by_kind: dict[str, tuple[int, str]] = {}
    parts = [
        (int(count), words.strip(" .,")) for count, words in _PART.findall(remainder.strip(" ."))
    ]
    if not parts and remainder:
        parts = [(int(_COUNT.match(head)[1]), remainder.strip(" ."))]  # type: ignore[index]
    for count, words in parts:
        # volumes have affinities of their own
        order = ("volume", *(kind for kind in _KINDS if kind != "volume"))
        kind = next((kind for kind in order if _KINDS[kind].search(words)), "")
        if (
            kind == "taint"
            and len(parts) > 1
            and (CONTROL_PLANE in words or ("{" not in words and count <= controls))
        ):
            continue
        before, earlier = by_kind.get(kind, (0, ""))
        by_kind[kind] = (before + count, f"{earlier}; {words}".strip("; "))
    return {kind: item for kind, item in by_kind.items() if kind}


def waiting(facts: Facts) -> Iterator[tuple[Pod, str, str, Confidence]]:
    """Each pod that waits, the kind of reason that most nodes have, and the words of all."""
    tainted_nodes = [node for node in facts.cluster.nodes if node.taints]
    controls = sum(
        all(taint.startswith(CONTROL_PLANE) for taint in node.taints) for node in tainted_nodes
    )
    for pod in facts.cluster.pods:
        if not pod.waits or pod.node or pod.gates or pod.going:
            continue
        by_kind = reasons(pod.waits, controls)
        maximum = max((count for count, _ in by_kind.values()), default=0)
        first = [kind for kind, (count, _) in by_kind.items() if count == maximum]
        words = "; ".join(
            f"{count} nodes: {text}" if count else text for count, text in by_kind.values()
        )
        confidence = Confidence.CERTAIN if len(first) == 1 else Confidence.LIKELY
        for kind in first:
            yield pod, kind, words or pod.waits, confidence


def _only_control_planes(facts: Facts, words: str) -> bool:
    """Whether control planes are all the nodes there are, and their taint the only reason."""
    nodes = facts.cluster.nodes
    tainted = all(any(taint.startswith(CONTROL_PLANE) for taint in node.taints) for node in nodes)
    is_named = CONTROL_PLANE in words and words.count("untolerated taint") == 1
    return ";" not in words and (is_named or tainted)


def _of(kind: str) -> Callable[[Facts], Iterator[Sighting]]:
    def find(facts: Facts) -> Iterator[Sighting]:
        for pod, reason, words, confidence in waiting(facts):
            if reason != kind or (kind == "taint" and _only_control_planes(facts, words)):
                continue
            if not _still(facts, pod, kind):
                confidence = min(confidence, Confidence.LIKELY)
            yield Sighting(
                pod=pod.key,
                evidence=(words, *_related_facts(facts, pod, kind)),
                confidence=confidence,
                explains=of_refused(pod.key),
            )

    return find


def _still(facts: Facts, pod: Pod, kind: str) -> bool:
    """Whether what the scheduler said when it tried last is so now, where nodes and claims tell."""
    if kind == "cordon":
        return any(item.cordoned for item in facts.cluster.nodes)
    if kind == "taint":
        return any(item.taints for item in facts.cluster.nodes)
    if kind == "nodes":
        return not facts.cluster.nodes
    bound = {
        item.name
        for item in facts.cluster.claims
        if item.namespace == pod.namespace and item.phase == "Bound"
    }
    return kind != "volume" or not pod.claims or not set(pod.claims) <= bound


def _related_facts(facts: Facts, pod: Pod, kind: str) -> list[str]:
    """What else tells of it: the nodes' taints, the claims' phases, what nodes offer."""
    cluster = facts.cluster
    if kind == "taint":
        return [
            f"{entry.name}: {', '.join(entry.taints)}" for entry in cluster.nodes if entry.taints
        ][:4]
    if kind == "volume":
        pod_claims = [
            entry
            for entry in cluster.claims
            if entry.namespace == pod.namespace and entry.name in pod.claims
        ]
        missing = set(pod.claims) - {entry.name for entry in pod_claims}
        messages = [
            entry.message
            for item in pod_claims
            for entry in cluster.events_of(f"{item.namespace}/{item.name}")
        ]
        return [
            *(
                f"claim {entry.name}: {entry.phase}, class {entry.storage_class or 'none'}"
                for entry in pod_claims
                if entry.phase != "Bound"
            ),
            *(f"claim {name}: there is none" for name in sorted(missing)),
            *messages[-1:],
        ]
    if kind == "resource":
        return [
            f"{entry.name}: nvidia.com/gpu {entry.allocatable['nvidia.com/gpu']} allocatable"
            for entry in cluster.nodes
            if "nvidia.com/gpu" in entry.allocatable
        ][:4]
    return []


def control_plane_taint(facts: Facts) -> Iterator[Sighting]:
    """The only nodes there are keep pods away."""
    for pod, kind, words, confidence in waiting(facts):
        if kind == "taint" and _only_control_planes(facts, words):
            yield Sighting(pod=pod.key, evidence=(words,), confidence=confidence)


def gate(facts: Facts) -> Iterator[Sighting]:
    for pod in facts.cluster.pods:
        if pod.gates and not pod.node and not pod.going:
            line = f"spec.schedulingGates: {', '.join(pod.gates)}"
            yield Sighting(pod=pod.key, evidence=(line,), values={"gates": ", ".join(pod.gates)})


def volume_mount(facts: Facts) -> Iterator[Sighting]:
    """Pods that have a node and wait for a volume on it."""
    for pod in facts.cluster.pods:
        if pod.ready or not pod.node or pod.going or pod.phase != "Pending":
            continue
        events = facts.cluster.events_of(pod.key, "FailedMount", "FailedAttachVolume")
        waits = [container for container in pod.containers if container.reason in _NOT_BEGUN]
        if events and waits and not words_causes.name_of(events[-1].message):
            # the kubelet tries again every two minutes at least (exponential_backoff.go)
            confidence = Confidence.CERTAIN
            if not log_lines.present(events[-1].at, facts.cluster.now, _MOUNTS_S):
                confidence = Confidence.LIKELY
            evidence = (events[-1].message,)
            yield Sighting(node=pod.node, pod=pod.key, evidence=evidence, confidence=confidence)


_DESCRIBE = "kubectl -n {namespace} describe pod {name}"
# kind: meaning, remedy, command
_WAITS = {
    "resource": (
        "a pod waits: no node has enough of what it asks for left",
        "ask for less, end something, or add a node",
        "kubectl describe nodes | grep -A 12 'Allocated resources'",
    ),
    "taint": (
        "a pod waits: every node that could take it has a taint that it does not tolerate",
        "remove the taint once its reason is gone, or let the pod tolerate it",
        "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",
    ),
    "affinity": (
        "a pod waits: its node selector, affinity or topology spread fits no node",
        "correct the selector, or label a node",
        "kubectl -n {namespace} get pod {name} -o yaml | grep -A 12 -E 'nodeSelector|affinity'; "
        "kubectl get nodes --show-labels",
    ),
    "volume": (
        "a pod waits: its volume claim is not bound, or bound to another node",
        "name a storage class that exists, make the claim, or free the volume's node",
        "kubectl -n {namespace} get pvc; kubectl get storageclass",
    ),
    "claim": (
        "a pod waits: no node has the devices that its resource claims ask for",
        "end what has the devices, correct the claim or its device class, or see why the DRA "
        "driver offers none (ResourceSlices)",
        "kubectl -n {namespace} get resourceclaims; kubectl get deviceclasses,resourceslices",
    ),
    "nodes": (
        "a pod waits: the cluster has no node",
        "run deploys/site.py, which joins the nodes again",
        "kubectl get nodes; sudo journalctl -u kubelet -n 30 --no-pager",
    ),
    "port": (
        "a pod waits: a port of the host that it asks for is taken on every node",
        "end what has the port, or ask for another one",
        _DESCRIBE,
    ),
    "cordon": (
        "a pod waits: the nodes that could take it are cordoned",
        "uncordon them once they are well",
        "kubectl get nodes --field-selector spec.unschedulable=true",
    ),
}

TABLE = (
    *(
        Cause(
            id=f"pending-{kind}",
            meaning=meaning,
            find=_of(kind),
            remedy=remedy,
            command=command,
            explains=("coredns-not-ready", "device-plugin-missing", "prometheus-down"),
        )
        for kind, (meaning, remedy, command) in _WAITS.items()
    ),
    Cause(
        id="control-plane-taint",
        meaning="a pod waits: the control planes are the only nodes, and their taint keeps it away",
        find=control_plane_taint,
        remedy="add workers, or remove the taint where control planes shall run everything",
        command=f"kubectl taint nodes --all {CONTROL_PLANE}-",
        explains=("coredns-not-ready",),
    ),
    Cause(
        id="pending-gate",
        meaning="a pod waits: a scheduling gate is on it, which its controller has to remove",
        find=gate,
        remedy="look at the controller that owns the gate; the scheduler does not try before",
        command="kubectl -n {namespace} get pod {name} -o jsonpath='{{.spec.schedulingGates}}'",
    ),
    Cause(
        id="volume-mount",
        meaning="a pod waits on its node: a volume cannot be attached or mounted there",
        find=volume_mount,
        remedy="read why; another node may still have the volume",
        command=_DESCRIBE,
    ),
)
