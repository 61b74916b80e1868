"""What a drain does to a node's pods: which move, which stay, which block it: pure judgements.

`kubectl drain` does the moving, by the Eviction API, which respects PodDisruptionBudgets. It does
not tell what a person wants to know: whose pods these are, and why one does not go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuboot.cluster.api_answers import parse_answers
from gpuboot.cluster.budgets import Budget, blocking_budget, counts, spares
from gpuboot.cluster.objects import Json, parse_node
from gpuboot.cluster.pods import Pod as ApiPod
from gpuboot.cluster.pods import parse_pod
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.volumes import NodeVolume, of_node
from gpuboot.config.problems import join_first

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
VOLUMES = "/api/v1/persistentvolumes"
_HASH = "pod-template-hash"
_MAX_LISTED = 5


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod of the node.

    + owner: what makes another one, e.g. `Deployment web`; "" for a pod that nobody makes again
    + gpus: how many GPUs, or parts of some, it was given
    + empty_dirs: names of its emptyDir volumes on disk, whose data ends with it; memory_dirs: of
      those in memory, which are no data that anybody expects to find again
    + budgets: PodDisruptionBudgets that the Eviction API asks about it; `held_by` those of them
      that do not let it go now
    + ending: it has been told to end; finished: its containers have, and start no more
    + finalizers: what must happen before it is gone
    """

    namespace: str
    name: str
    owner: str = ""
    gpus: int = 0
    empty_dirs: tuple[str, ...] = ()
    memory_dirs: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    held_by: tuple[Budget, ...] = ()
    ending: bool = False
    finished: bool = False
    finalizers: tuple[str, ...] = ()

    def __str__(self) -> str:
        owner_text = self.owner or "no controller: nothing makes it again"
        gpus = f", {self.gpus} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        return f"{self.namespace}/{self.name} ({owner_text}{gpus})"


@dataclass(frozen=True, kw_only=True)
class NodePods:
    """What runs on a node, for who wants it empty.

    + error: why there is no answer; "" when there is one
    + exists, ready: the cluster has this node; its kubelet answers
    + leaving: pods that a drain moves away; DaemonSets' and static pods stay
    + volumes: PersistentVolumes that are on this node alone
    """

    error: str = ""
    exists: bool = False
    ready: bool = False
    leaving: tuple[Pod, ...] = ()
    volumes: tuple[NodeVolume, ...] = ()


def paths(node: str) -> tuple[str, ...]:
    """What the API server is asked about a node."""
    return (
        f"/api/v1/nodes/{node}",
        f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}",
        BUDGETS,
        VOLUMES,
    )


def parse(lines: Iterable[str], node: str) -> NodePods:
    """What the API server answered to `paths`. Raises `FactOutputError`."""
    node_paths = paths(node)
    answers = parse_answers(lines, node_paths, optional=node_paths[:1])
    if answers.error:
        return NodePods(error=answers.error)
    document = answers.documents.get(node_paths[0])
    budgets = answers.items(BUDGETS)
    return NodePods(
        exists=document is not None,
        ready=document is not None and parse_node(document).ready,
        leaving=_leaving(answers.items(node_paths[1]), budgets),
        volumes=tuple(of_node(answers.items(VOLUMES), node)),
    )


def paths_of_pods(nodes: Sequence[str]) -> tuple[str, ...]:
    """What the API server is asked about the pods of several nodes."""
    return (*(paths(node)[1] for node in nodes), BUDGETS)


def parse_pods(lines: Iterable[str], nodes: Sequence[str]) -> dict[str, NodePods]:
    """What the API server answered to `paths_of_pods`: the pods of each node, and no more of it.

    Raises `FactOutputError`.
    """
    pod_paths = paths_of_pods(nodes)
    answers = parse_answers(lines, pod_paths)
    budgets = answers.items(BUDGETS)
    return {
        node: NodePods(
            error=answers.error,
            leaving=_leaving(answers.items(path), budgets),
        )
        for node, path in zip(nodes, pod_paths, strict=False)
    }


def _leaving(items: Iterable[Json], budgets: Sequence[Json]) -> tuple[Pod, ...]:
    pods = [(item, parse_pod(item)) for item in items]
    return tuple(
        _pod(item, pod, budgets)
        for item, pod in pods
        if not pod.static and not pod.owner.startswith("DaemonSet ")
    )


def _owner(pod: ApiPod) -> str:
    kind, _, name = pod.owner.partition(" ")
    suffix = f"-{pod.labels.get(_HASH)}"
    if kind == "ReplicaSet" and name.endswith(suffix):
        return f"Deployment {name.removesuffix(suffix)}"
    return pod.owner


def _pod(item: Json, pod: ApiPod, budgets: Iterable[Json]) -> Pod:
    counting = [budget for budget in budgets if counts(budget, pod) and not spares(pod)]
    return Pod(
        namespace=pod.namespace,
        name=pod.name,
        owner=_owner(pod),
        gpus=sum(pod.devices.values()),
        empty_dirs=_empty_dirs(item["spec"], memory=False),
        memory_dirs=_empty_dirs(item["spec"], memory=True),
        budgets=tuple(budget["metadata"]["name"] for budget in counting),
        held_by=tuple(filter(None, (blocking_budget(budget, pod) for budget in counting))),
        ending=pod.going,
        finished=pod.finished,
        finalizers=tuple(item["metadata"].get("finalizers") or ()),
    )


def _empty_dirs(spec: Json, memory: bool) -> tuple[str, ...]:
    return tuple(
        item["name"]
        for item in spec.get("volumes") or ()
        if item.get("emptyDir") is not None
        and (item["emptyDir"].get("medium") == "Memory") is memory
    )


def loss_lines(state: NodePods, leaves_for_good: bool = True) -> list[str]:
    """What a drain ends that nobody makes again, as lines for a person.

    + leaves_for_good: the machine leaves the cluster, and its volumes with it
    """
    lines = [
        f"{pod.namespace}/{pod.name} has no controller: nothing makes it again"
        for pod in state.leaving
        if not pod.owner
    ]
    lines += [
        f"{pod.namespace}/{pod.name} loses what is in emptyDir {', '.join(pod.empty_dirs)}"
        for pod in state.leaving
        if pod.empty_dirs
    ]
    if leaves_for_good:
        lines += [f"volume {volume} is on this machine alone" for volume in state.volumes]
    return lines


def forbidden(state: NodePods, empty_dirs: bool, unmanaged: bool) -> list[str]:
    """Pods that may not be ended, each with why.

    + empty_dirs: those with data in an emptyDir may; + unmanaged: those that nobody makes again may
    """
    return [
        f"{pod} has {obstacle}"
        for pod in state.leaving
        if not pod.finished
        for obstacle, may in (
            (f"data in emptyDir {', '.join(pod.empty_dirs)}", empty_dirs or not pod.empty_dirs),
            ("nobody who makes it again", unmanaged or bool(pod.owner)),
        )
        if not may
    ]


def options(state: NodePods, empty_dirs: bool, unmanaged: bool) -> str:
    """The options of `kubectl drain` by which it ends no pod that may not be ended.

    Arguments as of `forbidden`, which has found none.
    """
    # kubectl asks for this one for directories in memory as well
    in_memory = any(pod.memory_dirs for pod in state.leaving)
    allowed = (("--delete-emptydir-data", empty_dirs or in_memory), ("--force", unmanaged))
    return " ".join(["--ignore-daemonsets", *(option for option, may in allowed if may)])


def progress(state: NodePods, at_first: int, message: str) -> Progress:
    """How far a drain is.

    + at_first: how many pods were to leave
    + message: the last words of `kubectl drain` that did not end well
    """
    if state.error:
        return Progress(False, f"the API server does not answer: {state.error}")
    leaving_pods = state.leaving
    if not leaving_pods:
        return Progress(False, f"all pods have left; {message}")
    pod_lines = [
        _describe_pod(pod) for pod in sorted(leaving_pods, key=lambda pod: not pod.held_by)
    ]
    gone_count = max(at_first - len(leaving_pods), 0)
    text = f"{gone_count} of {max(at_first, len(leaving_pods))} pods have left"
    return Progress(False, f"{text}; still there: {join_first(pod_lines, _MAX_LISTED)}")


def _describe_pod(pod: Pod) -> str:
    if pod.ending:
        by = f", which waits for {', '.join(pod.finalizers)}" if pod.finalizers else ""
        return f"{pod} is ending{by}"
    if len(pod.budgets) > 1:
        return f"{pod}: several PodDisruptionBudgets count it: {', '.join(pod.budgets)}"
    if pod.held_by:
        return f"{pod} is kept by {pod.held_by[0]}"
    return str(pod)


def remedy(state: NodePods, node: str) -> str:
    """What a person can do about a drain that has not ended."""
    retry = f"then run again; to keep the node in service: kubectl uncordon {node}"
    blocked = [pod for pod in state.leaving if pod.budgets and not pod.ending]
    if blocked:
        return (
            "give the owner of these pods more replicas or another node with room for them, or "
            f"change the budget, {retry}"
        )
    return f"see what they wait for (kubectl describe pod), {retry}"
