"""Faults of a living cluster: what is missing from it, and pods that it refuses."""

from __future__ import annotations

import json
from typing import Any

from gpuboot.cluster.kubeadm import CRICTL
from tests.e2e.diagnose_faults import Fault, Step, kubectl, on, steps
from tests.e2e.diagnose_webhook import allow_pods, deny_pods

_PAUSE = "registry.k8s.io/pause:3.10"
_MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
_ETCD = "/etc/kubernetes/manifests/etcd.yaml"
_FULL = f"""\
sed -i 's/^    - etcd$/&\\n    - --quota-backend-bytes=1000000/' {_ETCD}
timeout 120 sh -c 'until curl -s 127.0.0.1:2381/health | grep -q NOSPACE; do sleep 1; done'
"""
_ROOM = f"""\
sed -i '/--quota-backend-bytes/d' {_ETCD}
timeout 120 sh -c 'until curl -s 127.0.0.1:2381/metrics |
  grep -q "^etcd_server_quota_backend_bytes 2[.]1"; do sleep 1; done
pki=/etc/kubernetes/pki/etcd
until {CRICTL} exec "$({CRICTL} ps -q --state running --name "^etcd$")" etcdctl \
  --cacert=$pki/ca.crt --cert=$pki/server.crt --key=$pki/server.key alarm disarm
do sleep 1; done'
"""
_FINALIZERS = {"metadata": {"finalizers": ["example.com/hold"]}}
_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "kubeadm:node-autoapprove-certificate-rotation"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
    ],
}


def _deployment(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": _PAUSE,
        "resources": {"limits": {"memory": "30Mi"}, "requests": {"cpu": "2m"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _space(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _selector(name: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


_WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "silent"},
    "webhooks": [
        {
            "name": "silent.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 2,
            "namespaceSelector": _selector("silent"),
            "clientConfig": {"service": {"name": "nobody", "namespace": "silent"}},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
        }
    ],
}
_POLICY = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "never.example.com"},
        "spec": {
            "matchConstraints": {"resourceRules": _WEBHOOK["webhooks"][0]["rules"]},  # type: ignore[index]
            "validations": [{"expression": "false"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "never"},
        "spec": {
            "policyName": "never.example.com",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": _selector("policy")},
        },
    },
)


def _limits(namespace: str, **limit: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", **limit}]},
    }


_LIMITS = (
    _limits("narrow", max={"memory": "20Mi"}),
    _limits("low", default={"cpu": "1m"}),  # less than its pods request
)
# what refuses pods comes before the Deployments whose pods it refuses
_REFUSING = (
    *map(_space, ("account", "priority", "runtime", "narrow", "low", "silent", "policy")),
    _space("secure", **{"pod-security.kubernetes.io/enforce": "restricted"}),
    *(*_LIMITS, _WEBHOOK, *_POLICY),
    _deployment("account", serviceAccountName="no-such"),
    _deployment("priority", priorityClassName="no-such"),
    _deployment("runtime", runtimeClassName="no-such"),
    *map(_deployment, ("narrow", "low", "silent", "policy", "secure")),
)


def _applied(*items: Any) -> Step:
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    return kubectl("apply", "-f", "-", stdin=manifest)


def _deleted(*items: Any) -> Step:
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    return kubectl("delete", "-f", "-", "--ignore-not-found", stdin=manifest)


# what an adapter leaves behind whose Helm release was deleted by hand
_EXTENSION = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
    "spec": {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "prometheus-adapter"},
    },
}

ABSENCE_FAULTS = (
    Fault(
        (
            *("service-account-missing", "priority-class-missing", "runtime-class-missing"),
            *("pod-security", "limit-range", "pods-refused", "webhook-silent", "admission-policy"),
        ),
        _applied(*_REFUSING),
        _deleted(*_REFUSING),
    ),
    Fault(
        ("webhook-refuses",),
        steps(deny_pods, _applied(_space("denied"), _deployment("denied"))),
        steps(allow_pods, _deleted(_space("denied"))),
    ),
    Fault(("component-missing",), _deleted(_BINDING), _applied(_BINDING)),
    Fault(
        ("static-pod-missing",),
        on("cp1", f"cp -p {_MANIFEST} /root/ && rm {_MANIFEST}"),
        on("cp1", f"cp -p /root/{_MANIFEST.rpartition('/')[2]} {_MANIFEST}"),
    ),
    Fault(("etcd-no-space",), on("cp1", _FULL), on("cp1", _ROOM)),
    Fault(
        ("api-extension-unavailable", "namespace-terminating"),
        steps(
            _applied(_EXTENSION),
            kubectl("create", "namespace", "waiting"),
            kubectl("delete", "namespace", "waiting", "--wait=false"),
        ),
        _deleted(_EXTENSION),
    ),
    Fault(
        ("namespace-terminating",),
        steps(
            kubectl("create", "namespace", "stuck"),
            kubectl("-n", "stuck", "create", "configmap", "held"),
            kubectl("-n", "stuck", "patch", "configmap", "held", "-p", json.dumps(_FINALIZERS)),
            kubectl("delete", "namespace", "stuck", "--wait=false"),
        ),
        kubectl(
            *("-n", "stuck", "patch", "configmap", "held", "-p"),
            '{"metadata": {"finalizers": null}}',
        ),
    ),
)
