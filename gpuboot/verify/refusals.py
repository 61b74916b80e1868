"""What refuses pods: the remedy, by the name in the API's message."""

from __future__ import annotations

import re

# Source: Kubernetes: admission/plugin/webhook/errors, plugin/pkg/admission/{resourcequota,
# limitranger,security/podsecurity,serviceaccount}, pkg/registry/core/pod.
_REMEDIES = (
    (
        r'admission webhook "(?P<name>[^"]+)" denied the request',
        "the admission webhook {name} refuses pods: find it by `kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B30 {name}`,"
        " and let its policy take pods in namespaces gpuboot-verify-*, then verify again",
    ),
    (
        r'failed calling webhook "(?P<name>[^"]+)"',
        "the admission webhook {name} does not answer, so nothing of its kind can be made: mend "
        "what is behind it, or delete its configuration (`kubectl get "
        "validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | grep -B30 {name}` "
        "shows both), then verify again",
    ),
    (
        r"ValidatingAdmissionPolicy '(?P<name>[^']+)'",
        "the ValidatingAdmissionPolicy {name} refuses pods: see `kubectl get "
        "validatingadmissionpolicy {name} -o yaml`, and leave namespaces gpuboot-verify-* out of "
        "its binding, then verify again",
    ),
    (
        r"exceeded quota: (?P<name>[^,\s]+)",
        "the quota {name} is used up: `kubectl get resourcequota -A` shows it; something makes it "
        "in new namespaces: leave gpuboot-verify-* out, or raise it, then verify again",
    ),
    (
        r'violates PodSecurity "(?P<name>[^"]+)"',
        "the Pod Security Standard {name} is enforced in new namespaces: leave out "
        "gpuboot-verify-* where that is set (defaults of the API server's "
        "--admission-control-config-file, or what labels namespaces), then verify again",
    ),
    (
        r"(?P<name>(?:minimum|maximum) \S+ usage per (?:Container|Pod) is [^.,\s]+)",
        "a LimitRange refuses it ({name}): `kubectl get limitrange -A` shows those that are made "
        "in new namespaces: leave gpuboot-verify-* out, then verify again",
    ),
    (
        r"no PriorityClass with name (?P<name>\S+) was found",
        "the PriorityClass {name} does not exist: run deploys/site.py, which makes those of "
        "Kubernetes and its own again",
    ),
    (
        r'RuntimeClass "(?P<name>[^"]+)" not found',
        "the RuntimeClass {name} does not exist: run deploys/site.py, which makes it again",
    ),
    (
        r"serviceaccount \"?(?P<name>[\w./-]+)\"? not found",
        "no ServiceAccount {name} is made in new namespaces, which is the controller manager's "
        "work: see its log (`kubectl -n kube-system logs -l component=kube-controller-manager`)",
    ),
    (
        r"namespace (?P<name>\S+) (?:because it )?is being terminated",
        "the namespace {name} is being deleted: `kubectl get namespace {name} -o yaml` tells what "
        "it waits for",
    ),
)


def remedy(message: str) -> str:
    """What to do about a refusal; "" where the message names nothing that refuses.

    + message: the API server's
    """
    for pattern, text in _REMEDIES:
        if match := re.search(pattern, message):
            return text.format(name=match["name"])
    return ""
