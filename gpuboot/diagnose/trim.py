"""What of the API server's objects is kept for a diagnosis: a list of fields.

So no secret that stands elsewhere in them (environment, arguments, data, annotations) ever leaves
the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboot.cluster import limit_ranges
from gpuboot.cluster.open_rights import INTENT_ANNOTATION
from gpuboot.telemetry.collectors import COLLECTORS_ANNOTATION

# field -> fields below it; {}: all that is below
Fields = Mapping[str, Any]

ALL: Fields = {}
_META: Fields = {
    **dict.fromkeys(("name", "namespace", "labels", "ownerReferences", "creationTimestamp"), ALL),
    **dict.fromkeys(("deletionTimestamp", "finalizers", "generation"), ALL),
    "annotations": {
        **dict.fromkeys((COLLECTORS_ANNOTATION, limit_ranges.ANNOTATION), ALL),
        "kubernetes.io/config.mirror": ALL,
    },
}
_CONTAINER: Fields = {
    "name": ALL,
    "image": ALL,
    "resources": ALL,
    "ports": ALL,
    "env": {"name": ALL},
}
_POD_SPEC: Fields = {
    **dict.fromkeys(("nodeName", "hostNetwork", "runtimeClassName", "schedulingGates"), ALL),
    **dict.fromkeys(("nodeSelector", "tolerations"), ALL),
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "volumes": {"persistentVolumeClaim": ALL, "configMap": {"name": ALL}},
}
_RUNNING: Fields = {
    **dict.fromkeys(("name", "ready", "restartCount", "state", "lastState"), ALL),
}
_NODE_STATUS = ("conditions", "allocatable", "capacity", "addresses")
_SELECTORS = ("serviceMonitorSelector", "serviceMonitorNamespaceSelector", "version")
_STOPPED = ("paused", "replicas")
_SET_STATUS = (
    *("desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "observedGeneration"),
    *("replicas", "readyReplicas", "updatedReplicas"),
)

POD: Fields = {
    "metadata": _META,
    "spec": _POD_SPEC,
    "status": {
        **dict.fromkeys(("phase", "reason", "message", "conditions", "podIP"), ALL),
        "containerStatuses": _RUNNING,
        "initContainerStatuses": _RUNNING,
    },
}
NODE: Fields = {
    "metadata": _META,
    "spec": {"taints": ALL, "unschedulable": ALL},
    "status": dict.fromkeys(_NODE_STATUS, ALL),
}
WORKLOAD: Fields = {
    "metadata": _META,
    "spec": {"replicas": ALL, "template": {"metadata": _META, "spec": _POD_SPEC}},
    "status": {**dict.fromkeys(_SET_STATUS, ALL), "conditions": ALL},
}
EVENT: Fields = {
    "metadata": {"namespace": ALL, "creationTimestamp": ALL},
    **dict.fromkeys(("involvedObject", "reason", "message", "type", "count"), ALL),
    **dict.fromkeys(("lastTimestamp", "eventTime", "series"), ALL),
}
CLAIM: Fields = {
    "metadata": _META,
    "spec": {"storageClassName": ALL, "volumeName": ALL},
    "status": {"phase": ALL},
}
MONITOR: Fields = {"metadata": _META, "spec": {"selector": ALL, "namespaceSelector": ALL}}
PROMETHEUS: Fields = {"metadata": _META, "spec": dict.fromkeys((*_SELECTORS, *_STOPPED), ALL)}
ALERTMANAGER: Fields = {"metadata": _META, "spec": dict.fromkeys(_STOPPED, ALL)}
BINDING: Fields = {
    "metadata": {"name": ALL, "namespace": ALL, "annotations": {INTENT_ANNOTATION: ALL}},
    "roleRef": ALL,
    "subjects": {"kind": ALL, "name": ALL},
}
SERVING_REQUEST: Fields = {
    "metadata": {"name": ALL, "creationTimestamp": ALL},
    "spec": {"signerName": ALL, "username": ALL},
    "status": {"conditions": ALL, "certificate": ALL},
}
NAMESPACE: Fields = {
    "metadata": _META,
    "spec": {"finalizers": ALL},
    "status": {"phase": ALL, "conditions": ALL},
}
EXTENSION: Fields = {
    "metadata": {"name": ALL},
    "spec": {"service": ALL},
    "status": {"conditions": ALL},
}
LIMIT_RANGE: Fields = {"metadata": _META, "spec": ALL}
NAME_FIELDS: Fields = {"metadata": _META, "handler": ALL}


def select_fields(value: Any, fields: Fields) -> Any:
    """A JSON value with these fields alone; of a list each item."""
    if isinstance(value, list):
        return [select_fields(item, fields) for item in value]
    if not isinstance(value, dict) or not fields:
        return value
    return {key: select_fields(value[key], below) for key, below in fields.items() if key in value}


def select_list_fields(answer: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    """A list's objects with these fields alone."""
    return {"items": [select_fields(item, fields) for item in answer.get("items") or []]}
