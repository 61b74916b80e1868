"""What refuses a verification's pods: the remedy, by the name in the API's message."""

from __future__ import annotations

from gpuboot.cluster.refusals import Kind, refusal

_REMEDIES: dict[Kind, str] = {
    "webhook": (
        "the admission webhook {name} refuses pods: find it by `kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B30 {name}`,"
        " and let its policy take pods in namespaces gpuboot-verify-*, then verify again"
    ),
    "silent-webhook": (
        "the admission webhook {name} does not answer, so nothing of its kind can be made: mend "
        "what is behind it, or delete its configuration (`kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B30 {name}` "
        "shows both), then verify again"
    ),
    "policy": (
        "the ValidatingAdmissionPolicy {name} refuses pods: see `kubectl get "
        "validatingadmissionpolicy {name} -o yaml`, and leave namespaces gpuboot-verify-* out of "
        "its binding, then verify again"
    ),
    "quota": (
        "the quota {name} is used up, or wants limits: `kubectl get resourcequota -A` shows it; "
        "something makes it in new namespaces: leave gpuboot-verify-* out, or raise it, then "
        "verify again"
    ),
    "pod-security": (
        "the Pod Security Standard {name} is enforced in new namespaces: leave out "
        "gpuboot-verify-* where that is set (defaults of the API server's "
        "--admission-control-config-file, or what labels namespaces), then verify again"
    ),
    "limit-range": (
        "a LimitRange refuses it ({name}): `kubectl get limitrange -A` shows those that are made "
        "in new namespaces: leave gpuboot-verify-* out, then verify again"
    ),
    "priority-class": (
        "the PriorityClass {name} does not exist: run deploys/site.py, which makes those of "
        "Kubernetes and its own again"
    ),
    "runtime-class": (
        "the RuntimeClass {name} does not exist: run deploys/site.py, which makes it again"
    ),
    "service-account": (
        "no ServiceAccount {name} is made in new namespaces, which is the controller manager's "
        "work: see its log (`kubectl -n kube-system logs -l component=kube-controller-manager`)"
    ),
    "namespace": (
        "the namespace {name} is being deleted: `kubectl get namespace {name} -o yaml` tells what "
        "it waits for"
    ),
}


def remedy(message: str) -> str:
    """What to do about a refusal; "" where the message names nothing that refuses.

    + message: the API server's
    """
    rejection = refusal(message)
    return _REMEDIES[rejection.kind].format(name=rejection.name) if rejection else ""
