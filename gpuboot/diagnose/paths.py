"""What a diagnosis asks the API server, and what it keeps of each answer."""

from __future__ import annotations

from gpuboot.cluster import cluster_answers, extensions, open_rights, serving_requests
from gpuboot.diagnose import trim

NODES = cluster_answers.NODES
PODS = cluster_answers.PODS
NAMESPACES = cluster_answers.NAMESPACES
RUNTIMES = cluster_answers.RUNTIMES
WORKLOADS = {**cluster_answers.WORKLOADS, "ReplicaSet": "/apis/apps/v1/replicasets"}
EVENTS = "/api/v1/events?fieldSelector=type%21%3DNormal"
CLAIMS = "/api/v1/persistentvolumeclaims"
LIMIT_RANGES = "/api/v1/limitranges"
POLICIES = "/apis/networking.k8s.io/v1/networkpolicies"
MONITORS = "/apis/monitoring.coreos.com/v1/servicemonitors"
PROMETHEUSES = "/apis/monitoring.coreos.com/v1/prometheuses"
ALERTMANAGERS = "/apis/monitoring.coreos.com/v1/alertmanagers"
# not a path: what of the cluster is missing, as `gpuboot.monitoring.components.Missing`
MISSING = "missing"
# not a path: digests of the exporters' collectors, by `namespace/name/key` of their ConfigMaps
COLLECTORS = "collectors"
# not a path: Alertmanager's silences, as its API has them
SILENCES = "Alertmanager's silences"

RETAINED_FIELDS: dict[str, trim.Fields] = {
    NODES: trim.NODE,
    PODS: trim.POD,
    NAMESPACES: trim.NAMESPACE,
    RUNTIMES: trim.NAME_FIELDS,
    **dict.fromkeys(WORKLOADS.values(), trim.WORKLOAD),
    EVENTS: trim.EVENT,
    CLAIMS: trim.CLAIM,
    **dict.fromkeys((LIMIT_RANGES, POLICIES), trim.LIMIT_RANGE),
    extensions.PATH: trim.EXTENSION,
    MONITORS: trim.MONITOR,
    PROMETHEUSES: trim.PROMETHEUS,
    ALERTMANAGERS: trim.ALERTMANAGER,
    **dict.fromkeys(open_rights.BINDING_PATHS, trim.BINDING),
    serving_requests.PATH: trim.SERVING_REQUEST,
}
# there may be no such kind of object
OPTIONAL = (MONITORS, PROMETHEUSES, ALERTMANAGERS)
