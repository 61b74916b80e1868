"""What goes and what stays in the cluster when a part of it is switched off."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuboot.cluster.api_answers import parse_answers
from gpuboot.cluster.helm_releases import Release
from gpuboot.cluster.managed_objects import Object
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.release_objects import release_objects
from gpuboot.cluster.stuck import WHILE_OTHERS_START_S, Stuck
from gpuboot.hosts import gpu_sharing

# Label of a namespace: a release of that name is being taken out of it. It is there before the
# release goes and until what its programs leave behind is gone, so that a killed run is finished.
REMOVING = "gpuboot.io/removing"
_RESOURCE_POLICY = "helm.sh/resource-policy"
_RELEASE_NAME = "meta.helm.sh/release-name"
_LISTED_KINDS = (
    "Deployment",
    "DaemonSet",
    "StatefulSet",
    "Prometheus",
    "Alertmanager",
    "ClusterPolicy",
)
# Set by the GPU Operator (gpu-operator v26.7.0, controllers/state_manager.go), by GPU feature
# discovery, and by the node feature discovery of its chart.
_SET_BY_OPERATOR = re.compile(
    r"nvidia\.com/(gpu\.(?!workload\.config$).+|cuda\..+|gfd\..+|vgpu\..+|mps\.capable"
    r"|mig\.(config\.state|strategy|capable))"
)
_SET_BY_DISCOVERY = "feature.node.kubernetes.io/"


@dataclass(frozen=True)
class Contents:
    """What runs in a namespace, and the DaemonSets of all.

    + workloads: DaemonSets, Deployments, StatefulSets and ReplicaSets of the namespace
    + error: why there is no answer; "" when there is one
    """

    error: str = ""
    workloads: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    daemonsets: tuple[Object, ...] = ()


# in the order of `contents_paths`; the last are the DaemonSets of all namespaces
_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet", "ReplicaSet")
_LISTS = (*_WORKLOADS, "Pod", "everywhere")


def contents_paths(namespace: str) -> list[str]:
    """Where the API server lists what `parse_contents` reads."""
    apps = "/apis/apps/v1"
    workloads = (f"{apps}/namespaces/{namespace}/{kind.lower()}s" for kind in _WORKLOADS)
    return [*workloads, f"/api/v1/namespaces/{namespace}/pods", f"{apps}/daemonsets"]


def parse_contents(lines: Iterable[str]) -> Contents:
    """What the fact of `contents_paths` printed. Raises `FactOutputError`."""
    answers = parse_answers(lines, _LISTS)
    return Contents(
        answers.error,
        tuple({**item, "kind": kind} for kind in _WORKLOADS for item in answers.items(kind)),
        tuple({**item, "kind": "Pod"} for item in answers.items("Pod")),
        tuple(answers.items("everywhere")),
    )


def leaving(contents: Contents, release: str, instances: Collection[str]) -> list[str]:
    """What is still there of a release that is being removed: workloads and pods, by name.

    + instances: kinds of its custom resources; what their operators have made leaves with them
    """
    owners = {(item["kind"], item["metadata"]["name"]): item for item in contents.workloads}

    def is_removed(item: Object) -> bool:
        meta = item["metadata"]
        if (meta.get("annotations") or {}).get(_RELEASE_NAME) == release:
            return True
        for owner in meta.get("ownerReferences") or ():
            if owner["kind"] in instances:
                return True
            if owner["kind"] in ("DaemonSet", "Deployment", "StatefulSet", "ReplicaSet"):
                above = owners.get((owner["kind"], owner["name"]))
                return above is None or is_removed(above)
        return False

    all_objects = (*contents.workloads, *contents.pods)
    return [
        f"{item['kind']} {item['metadata']['name']}"
        for item in all_objects
        if item["kind"] != "ReplicaSet" and is_removed(item)
    ]


def going(leaving_items: Sequence[str], release: str, namespace: str) -> Progress:
    """How far a removal is. + leaving_items: as `leaving` names it

    A pod may take its time to end, and its workload goes after it.
    """
    reasons = tuple(
        Stuck(
            f"{item} of {release}",
            "it does not go",
            WHILE_OTHERS_START_S,
            f"see `kubectl -n {namespace} get {item.replace(' ', '/').lower()} -o yaml`: "
            "its finalizers, or the node that it is on",
        )
        for item in leaving_items
    )
    text = f"{release} is going: {', '.join(leaving_items[:5])}"
    return Progress(not leaving_items, text, stuck=reasons, ready=-len(leaving_items))


def shown_objects(live: Release, name: str, namespace: str) -> list[Object]:
    """The objects of a release that a person wants to be told of when it goes."""
    listed_objects = [
        item for item in release_objects(live, name, namespace) if item["kind"] in _LISTED_KINDS
    ]
    return sorted(
        listed_objects,
        key=lambda item: (_LISTED_KINDS.index(item["kind"]), item["metadata"]["name"]),
    )


def lost_claims(live: Release, name: str, namespace: str) -> list[str]:
    """Volume claims that go with a release, since its chart has not told Helm to keep them."""
    return [
        item["metadata"]["name"]
        for item in release_objects(live, name, namespace)
        if item["kind"] == "PersistentVolumeClaim"
        and item["metadata"]["annotations"].get(_RESOURCE_POLICY) != "keep"
    ]


def stale_labels(
    nodes: Mapping[str, Mapping[str, str]], contents: Contents, release: str, discovery: bool
) -> dict[str, list[str]]:
    """Node -> labels of the GPU Operator that nobody keeps right once it is gone.

    What people set stays: `nvidia.com/mig.config`, which `sharing` may have set as well, and
    `nvidia.com/gpu.deploy.…=false`. A label by which somebody's DaemonSet chooses its nodes stays
    too: without it, its pods would end.

    + nodes: the labels of each
    + contents: of the operator's namespace; + release: whose DaemonSets do not count
    + discovery: node feature discovery goes with it, and what it has found
    """
    leaving_names = {*leaving(contents, release, ("ClusterPolicy",))}
    inside = {
        item["metadata"]["uid"] for item in contents.workloads if _title(item) in leaving_names
    }
    used = {
        key
        for item in contents.daemonsets
        if item["metadata"]["uid"] not in inside
        for key in _selected(item)
    }
    stale_keys = {
        node: sorted(
            key
            for key, value in labels.items()
            if key not in used and _set_by_operator(key, value, discovery)
        )
        for node, labels in nodes.items()
    }
    return {node: keys for node, keys in stale_keys.items() if keys}


def _title(item: Object) -> str:
    return f"{item['kind']} {item['metadata']['name']}"


def _set_by_operator(key: str, value: str, discovery: bool) -> bool:
    if key.startswith("nvidia.com/gpu.deploy."):
        return value != "false"
    if key.startswith(_SET_BY_DISCOVERY):
        return discovery
    if key == gpu_sharing.PLUGIN_LABEL:
        return gpu_sharing.is_ours(value)
    return bool(_SET_BY_OPERATOR.fullmatch(key))


def _selected(daemonset: Object) -> Iterator[str]:
    """Labels of nodes by which a DaemonSet chooses them."""
    spec: Mapping[str, Any] = daemonset["spec"]["template"]["spec"]
    yield from spec.get("nodeSelector") or ()
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in needed.get("nodeSelectorTerms") or ():
        yield from (item["key"] for item in term.get("matchExpressions") or ())
