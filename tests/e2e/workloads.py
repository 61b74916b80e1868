"""What runs in a lab while its nodes change: manifests for `kubectl apply -f -`."""

from __future__ import annotations

import json
from typing import Any

from gpuboot.hosts.gpu_sharing import GPU

_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"


def web(node: str, cache: bool = False) -> str:
    """A Deployment of one pod on a node, and a PodDisruptionBudget that lets it not go.

    + cache: with an emptyDir
    """
    container: dict[str, Any] = {"command": ["sleep", "36000"]}
    pod: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": node}}
    if cache:
        container["volumeMounts"] = [{"name": "cache", "mountPath": "/cache"}]
        pod["volumes"] = [{"name": "cache", "emptyDir": {}}]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    return _list(_deployment("web", pod, container), budget)


def train(node: str, resource: str = GPU) -> str:
    """A Deployment of one pod that computes on a GPU as long as it runs, rather on this node."""
    on_it = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    rather = [{"weight": 100, "preference": {"matchExpressions": on_it}}]
    pod = {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rather},
        },
    }
    container = {
        "command": ["bash", "-c", "while :; do /cuda-samples/vectorAdd; sleep 1; done"],
        "resources": {"limits": {resource: 1}},
    }
    return _list(_deployment("train", pod, container))


def computing(name: str) -> str:
    """A Deployment of pods that hold a GPU each, and leave its load to the lab."""
    container = {"command": ["sleep", "36000"], "resources": {"limits": {GPU: 1}}}
    return _list(_deployment(name, {}, container))


def database(namespace: str, *claims: str) -> str:
    """A Deployment of one pod with volume claims, each below /data."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    mounts = [{"name": name, "mountPath": f"/data/{name}"} for name in claims]
    container = {"command": ["sleep", "36000"], "volumeMounts": mounts}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Mi"}},
                },
            }
            for name in claims
        ),
        _deployment("database", {"volumes": volumes}, container),
    ]
    for item in objects[1:]:
        item["metadata"]["namespace"] = namespace
    return _list(*objects)


def _deployment(name: str, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": _IMAGE, **container}],
                    **pod,
                },
            },
        },
    }


def _list(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
