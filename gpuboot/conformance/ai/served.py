"""What the API server's own answers say: APIs that it serves, and who scales nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuboot.conformance.ai.evidence_requirements import FAQ
from gpuboot.conformance.ai.evidence_results import Result

DRA = "/apis/resource.k8s.io/v1"
_DRA_KINDS = frozenset(
    {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
)
_NODE_SCALERS = ("cluster-autoscaler", "karpenter")


def evaluate_dra(answer: Any) -> Result:
    """Whether all of DRA's API is served. + answer: to `DRA`; None: the server does not know it"""
    name = "dra_support"
    kinds = {item["name"] for item in (answer or {}).get("resources", ())}
    if missing := sorted(_DRA_KINDS - kinds):
        remedy = "Kubernetes serves it from 1.34 on, unless `--runtime-config` switches it off"
        return Result(name, "fail", f"{DRA} lacks {', '.join(missing)}", remedy=remedy)
    verbs = (
        f"{item['name']}: {' '.join(item['verbs'])}"
        for item in answer["resources"]
        if item["name"] in _DRA_KINDS
    )
    return Result(name, "pass", f"The API server serves all resources of {DRA}.", tuple(verbs))


def evaluate_node_scaling(workloads: Iterable[str]) -> Result:
    """Whether something scales nodes. + workloads: `namespace/name` of all Deployments"""
    name = "cluster_autoscaling"
    names = sorted(workloads)
    scalers = [key for key in names if any(word in key for word in _NODE_SCALERS)]
    if scalers:
        return Result(
            name,
            "not_run",
            f"{', '.join(scalers)} scales nodes; gpuboot does not try it, which could cost money",
            remedy="try it by hand: more pods with GPUs than fit, then none",
        )
    summary = (
        "The requirement is for platforms that provide a cluster autoscaler. These nodes are "
        "machines of an inventory; nothing could add one, and no autoscaler runs. The programme's "
        f"FAQ names clusters on premises as the example: {FAQ}"
    )
    return Result(name, "not_applicable", summary, (f"{len(names)} Deployments, none of them one",))
