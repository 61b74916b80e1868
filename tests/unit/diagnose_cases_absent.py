"""What is missing or refused, each beside what looks like it. Texts are the API server's own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gpuboot.cluster import extensions
from gpuboot.cluster.objects import parse_going
from gpuboot.cluster.workloads import Workload
from gpuboot.diagnose.facts import Facts
from gpuboot.monitoring.components import Missing
from tests.unit.diagnose_site import COREDNS, Case, cluster, control, event, site

# Kubernetes 1.36.3, a webhook for */* whose service does not exist
EVERYTHING_REFUSED = (
    "GET /api/v1/namespaces/monitoring/services/prometheus-operated:9090/proxy/api/v1/targets: 500 "
    'Internal error occurred: failed calling webhook "gone.corp.example.com": failed to call '
    'webhook: Post "https://policy.default.svc:443/?timeout=10s": service "policy" not found'
)
NO_CLASS = 'pods "x" is forbidden: no PriorityClass with name gone was found'
NO_ENDPOINTS = 'endpoints for service/metrics-server in "kube-system" have no addresses'
NO_SCHEDULER = ("Pod", "kube-system", "kube-scheduler-cp1")
_BINDING = "kubeadm:node-autoapprove-certificate-rotation"
# a namespace of Kubernetes 1.36.3 whose ConfigMap has a finalizer
STUCK: dict[str, Any] = {
    "metadata": {"name": "stuck", "deletionTimestamp": "2026-09-21T13:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {
        "phase": "Terminating",
        "conditions": [
            {
                "type": "NamespaceDeletionContentFailure",
                "status": "False",
                "message": "All content successfully deleted, may be waiting on finalization",
            },
            {
                "type": "NamespaceContentRemaining",
                "status": "True",
                "message": "Some resources are remaining: configmaps. has 1 resource instances",
            },
            {
                "type": "NamespaceFinalizersRemaining",
                "status": "True",
                "message": "Some content in the namespace has finalizers remaining: "
                "example.com/hold in 1 resource instances",
            },
        ],
    },
}


def _missing(*objects: tuple[str, str, str], **fields: tuple[str, ...]) -> Facts:
    return site(at=cluster(missing=Missing(objects, **fields)))


def alarm(reason: str) -> str:
    """etcd's answer to the question for its health, as etcdhttp/health.go writes it."""
    return json.dumps({"health": "false", "reason": reason}, separators=(",", ":"))


def going(**meta: object) -> Facts:
    item = {**STUCK, "metadata": {**STUCK["metadata"], **meta}}
    namespace = parse_going(item)
    return site(at=cluster(going=(namespace,) if namespace else ()))


def extension(status: str, reason: str, message: str) -> Facts:
    """metrics-server's APIService, with the words of kube-aggregator's available_controller."""
    condition = {
        "type": "Available",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-09-21T13:00:00Z",
    }
    item = {
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {"service": {"namespace": "kube-system", "name": "metrics-server", "port": 443}},
        "status": {"conditions": [condition]},
    }
    return site(at=cluster(extensions=tuple(extensions.parse([item]))))


def refused_pods(message: str, ready: int = 0) -> Facts:
    """A DaemonSet whose pods were refused, as its event says."""
    daemon_set = Workload(kind="DaemonSet", namespace="ml", name="agent", desired=2, ready=ready)
    refusal = replace(
        event("agent", "FailedCreate", f"Error creating: {message}"), kind="DaemonSet"
    )
    return site(at=cluster(workloads=(COREDNS, daemon_set), events=(refusal,)))


def deleted_since(message: str) -> Facts:
    """The same, and nobody wants such pods any more."""
    daemon_set = Workload(kind="DaemonSet", namespace="ml", name="other", desired=2, ready=2)
    return site(
        at=cluster(workloads=(COREDNS, daemon_set), events=refused_pods(message).cluster.events)
    )


def _refusal(cause: str, message: str) -> Case:
    return Case(cause, refused_pods(message), refused_pods(message, ready=2), message)


CASES = (
    Case(
        "component-missing",
        _missing(("Deployment", "kube-system", "coredns"), ("ClusterRoleBinding", "", _BINDING)),
        site(),
        f"ClusterRoleBinding {_BINDING}: there is none\n"
        "Deployment kube-system/coredns: there is none",
    ),
    Case(
        "definition-missing",
        _missing(definitions=("servicemonitors.monitoring.coreos.com",)),
        _missing(("ServiceMonitor", "monitoring", "x")),
        "servicemonitors.monitoring.coreos.com: there is none",
    ),
    Case(
        "release-missing",
        _missing(releases=("gpu-operator/gpu-operator",)),
        site(),
        "Helm release gpu-operator/gpu-operator: there is none",
    ),
    Case(
        "etcd-no-space",
        site(cp=control("etcd\t" + alarm("ALARM NOSPACE"))),
        site(cp=control('etcd\t{"health":"true","reason":""}')),
        "ALARM NOSPACE",
    ),
    Case(
        "etcd-corrupt",
        site(cp=control("etcd\t" + alarm("ALARM CORRUPT"))),
        # an alarm of neither kind, and no answer at all
        site(cp=control("etcd\t" + alarm("ALARM UNKNOWN"))),
        "ALARM CORRUPT",
    ),
    Case(
        "static-pod-missing",
        site(
            cp=control("no_manifest\tkube-scheduler"),
            at=cluster(missing=Missing((NO_SCHEDULER,))),
        ),
        # of a node that has not joined yet
        site(at=cluster(missing=Missing((("Pod", "kube-system", "kube-scheduler-cp2"),)))),
        "/etc/kubernetes/manifests/kube-scheduler.yaml is missing",
    ),
    Case(
        "namespace-terminating",
        going(),
        going(deletionTimestamp=None),
        "NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: "
        "example.com/hold in 1 resource instances",
    ),
    Case(
        "api-extension-unavailable",
        extension("False", "MissingEndpoints", NO_ENDPOINTS),
        extension("True", "Passed", "all checks passed"),
        f"not available for 4400 s: MissingEndpoints: {NO_ENDPOINTS}",
    ),
    # one whose state the API server has not looked at yet
    Case(
        "api-extension-unavailable",
        extension("False", "FailedDiscoveryCheck", "failing or missing response: EOF"),
        extension("", "", ""),
        "FailedDiscoveryCheck: failing or missing response: EOF",
    ),
    _refusal(
        "webhook-refuses",
        'admission webhook "pods.example.com" denied the request: no pods today',
    ),
    _refusal(
        "webhook-silent",
        'Internal error occurred: failed calling webhook "pods.example.com": failed to call '
        'webhook: Post "https://pods.x.svc:443/?timeout=10s": service "pods" not found',
    ),
    # one that is asked about everything: not even an event can be made
    Case(
        "webhook-silent",
        site(at=cluster(targets=None, errors={"targets": EVERYTHING_REFUSED})),
        site(at=cluster(targets=None, errors={"targets": "503 no endpoints available"})),
        EVERYTHING_REFUSED,
    ),
    _refusal(
        "admission-policy",
        "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'signed.example.com' with binding "
        "'all' denied request: failed expression: false",
    ),
    _refusal(
        "pod-security",
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation '
        "!= false",
    ),
    _refusal(
        "limit-range",
        'pods "x" is forbidden: maximum memory usage per Container is 20Mi, but limit is 170Mi',
    ),
    # Kubernetes 1.36.3: limitranger/admission.go, resourcequota/controller.go
    _refusal(
        "limit-range",
        'pods "x" is forbidden: memory max limit to request ratio per Container is 1, but provided '
        "ratio is 2.428571",
    ),
    _refusal(
        "pending-quota",
        'pods "x" is forbidden: failed quota: team: must specify limits.cpu for: main',
    ),
    # a default of a LimitRange below what the pod requests
    _refusal(
        "pods-refused",
        'Pod "x" is invalid: spec.containers[0].resources.requests: Invalid value: "100m": must be '
        "less than or equal to cpu limit of 50m",
    ),
    _refusal("priority-class-missing", NO_CLASS),
    Case(
        "priority-class-missing",
        refused_pods(NO_CLASS),
        deleted_since(NO_CLASS),
        NO_CLASS,
    ),
    _refusal(
        "runtime-class-missing",
        'pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
    ),
    _refusal(
        "service-account-missing",
        'pods "x" is forbidden: error looking up service account ml/agent: serviceaccount "agent" '
        "not found",
    ),
)
