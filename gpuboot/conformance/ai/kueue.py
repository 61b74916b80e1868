"""Kueue: queues that start all pods of a job or none, and refuse a queue that makes no sense.

Objects as of Kueue v0.17.0 (apis/kueue/v1beta2, pkg/webhooks/clusterqueue_webhook.go): the schema
of a ClusterQueue takes any name of a resource, and the webhook alone refuses a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuboot.conformance.ai.evidence_results import Result
from gpuboot.conformance.ai.service import LABELS
from gpuboot.conformance.suite_manifests import restricted

Object = dict[str, Any]

GROUP = "/apis/kueue.x-k8s.io"
KINDS = ("clusterqueues", "resourceflavors")  # of the cluster, in the order of their removal
PODS = 2  # that the queue has room for
FITS, TOO_LARGE = "fits", "too-large"
_RESOURCE_NAME = "no resource"
_DENIAL = "admission webhook"
_INSTALL = (
    "helm install kueue oci://registry.k8s.io/kueue/charts/kueue --version 0.17.0 "
    "-n kueue-system --create-namespace"
)
REMEDY = f"install Kueue, for this command alone or for good: `{_INSTALL}`; then run again"


def _object(api: str, kind: str, name: str, spec: Object) -> Object:
    """An object of Kueue. The server takes none of a CustomResourceDefinition without its kind.

    + api: path of Kueue's API, with the version
    + name: of this run alone: Kueue's finalizers let what was deleted stay a while
    """
    version = api.removeprefix("/apis/")
    metadata = {"name": name, "labels": dict(LABELS)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def flavor(api: str, name: str) -> Object:
    """A kind of resource of which the queue has some."""
    return _object(api, "ResourceFlavor", name, {})


def cluster_queue(api: str, name: str, resource: str, quota: str) -> Object:
    """A queue with room for so much of a resource."""
    amounts = [{"name": resource, "nominalQuota": quota}]
    group = {"coveredResources": [resource], "flavors": [{"name": name, "resources": amounts}]}
    return _object(api, "ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group]})


def bad_queue(api: str, name: str) -> Object:
    """A queue that a webhook has to refuse."""
    queue = cluster_queue(api, name, _RESOURCE_NAME, "1")
    queue["metadata"]["name"] = f"{name}-bad"
    return queue


def local_queue(api: str, name: str) -> Object:
    """The namespace's way into the queue of the same name."""
    return _object(api, "LocalQueue", name, {"clusterQueue": name})


def job(name: str, queue: str, pods: int, image: str, amounts: dict[str, str]) -> Object:
    """A job whose pods have to run together. + amounts: that each pod asks for"""
    container = {
        "name": "worker",
        "image": image,
        "command": ["sh", "-c", "sleep 5"],
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": restricted(),
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    labels = {**LABELS, "kueue.x-k8s.io/queue-name": queue}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "suspend": True,
            "backoffLimit": 0,
            "activeDeadlineSeconds": 600,
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": spec},
        },
    }


def evaluate_gang(succeeded: int, partial: int, resource: str, lines: Sequence[str]) -> Result:
    """Whether all pods of a job ran, and none of one for which there was no room.

    + succeeded: pods of the job that fits; partial: of the other, that were made
    """
    name = "gang_scheduling"
    lines = (
        f"{PODS} pods of a job that asks for {PODS} {resource}: {succeeded} succeeded",
        f"pods of a job that asks for {PODS + 1}, with room for {PODS}: {partial} were started",
        *lines,
    )
    if succeeded == PODS and not partial:
        return Result(name, "pass", "Kueue started all pods of a job, or none.", tuple(lines))
    remedy = "`kubectl get workloads.kueue.x-k8s.io -A` and the log of Kueue's manager tell why"
    return Result(name, "fail", "; ".join(lines[:2]), tuple(lines), remedy)


def evaluate_controller(denial: str, reconciled: str, lines: Sequence[str]) -> Result:
    """Whether the webhook refused a bad object, and the controller reconciled a good one.

    + denial: what the API server said to the bad object; "" where it took it
    + reconciled: why the good one is not in its expected state; "" where it is
    """
    name = "robust_controller"
    lines = (f"a ClusterQueue for `{_RESOURCE_NAME}`: {denial or 'was taken'}", *lines)
    if _DENIAL not in denial:
        summary = f"no webhook of Kueue refused a bad ClusterQueue: {denial or 'it was taken'}"
        remedy = "`kubectl get validatingwebhookconfigurations` must have Kueue's"
        return Result(name, "fail", summary, tuple(lines), remedy)
    if reconciled:
        remedy = "the log of Kueue's manager tells why"
        return Result(name, "fail", reconciled, tuple(lines), remedy)
    summary = "Kueue's webhook refused a bad ClusterQueue; its controller made good ones active."
    return Result(name, "pass", summary, tuple(lines))
