"""What refuses pods, by the API server's message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "webhook", "silent-webhook", "policy", "quota", "pod-security", "limit-range",
    "priority-class", "runtime-class", "service-account", "namespace",
]  # fmt: skip

# Source: Kubernetes: admission/plugin/webhook/errors, plugin/pkg/admission/{resourcequota,
# limitranger,security/podsecurity,serviceaccount}, pkg/registry/core/pod.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("webhook", r'admission webhook "(?P<name>[^"]+)" denied the request'),
    ("silent-webhook", r'failed calling webhook "(?P<name>[^"]+)"'),
    ("policy", r"ValidatingAdmissionPolicy '(?P<name>[^']+)'"),
    ("quota", r"(?:exceeded|failed|status unknown for) quota: (?P<name>[^,:\s]+)"),
    ("pod-security", r'violates PodSecurity "(?P<name>[^"]+)"'),
    (
        "limit-range",
        r"(?P<name>(?:(?:minimum|maximum) \S+ usage|\S+ max limit to request ratio) "
        r"per (?:Container|Pod) is [^.,\s]+)",
    ),
    ("priority-class", r"no PriorityClass with name (?P<name>\S+) was found"),
    ("runtime-class", r'RuntimeClass "(?P<name>[^"]+)" not found'),
    ("service-account", r"serviceaccount \"?(?P<name>[\w./-]+)\"? not found"),
    ("namespace", r"namespace (?P<name>\S+) (?:because it )?is being terminated"),
)
_WEBHOOKS = (
    "`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml | "
    "grep -B30 {name}`"
)
# what a person does about it, where pods of a workload in a namespace are refused
_REMEDIES: dict[Kind, str] = {
    "webhook": "let the admission webhook {name} take pods of namespace {namespace}, or leave the "
    f"namespace out of its selector ({_WEBHOOKS} shows it)",
    "silent-webhook": "the admission webhook {name} does not answer: mend what is behind it, or "
    f"delete its configuration ({_WEBHOOKS} shows both)",
    "policy": "leave namespace {namespace} out of the binding of the ValidatingAdmissionPolicy "
    "{name} (`kubectl get validatingadmissionpolicybindings -o wide`), or change the policy",
    "quota": "raise or delete the quota {name} (`kubectl -n {namespace} describe resourcequota "
    "{name}`)",
    "pod-security": "the namespace {namespace} enforces the Pod Security Standard {name}: run "
    "deploys/site.py where the namespace is gpuboot's, or `kubectl label --overwrite namespace "
    "{namespace} pod-security.kubernetes.io/enforce=privileged`",
    "limit-range": "change or delete the LimitRange of namespace {namespace} ({name}; `kubectl -n "
    "{namespace} describe limitrange`)",
    "priority-class": "the PriorityClass {name} does not exist: make it (`kubectl get "
    "priorityclasses`)",
    "runtime-class": "the RuntimeClass {name} does not exist: make it (`kubectl get "
    "runtimeclasses`)",
    "service-account": "the ServiceAccount {name} does not exist: make it (`kubectl -n {namespace} "
    "get serviceaccounts`)",
    "namespace": "the namespace {name} is being deleted: `kubectl get namespace {name} -o yaml` "
    "tells what it waits for",
}


@dataclass(frozen=True)
class Refusal:
    """Why a pod was not taken. + name: of what refuses it, or of what is missing"""

    kind: Kind
    name: str


def refusal(message: str) -> Refusal | None:
    """What refuses it; None where the message names nothing that refuses.

    + message: the API server's, or an event's that quotes it
    """
    for kind, pattern in _PATTERNS:
        if match := re.search(pattern, message):
            return Refusal(kind, match["name"])
    return None


def remedy(message: str, namespace: str) -> str:
    """What a person does about a refusal; "" where the message names nothing that refuses.

    + message: as of `refusal`
    + namespace: of the pods
    """
    rejection = refusal(message)
    if rejection is None:
        return ""
    return _REMEDIES[rejection.kind].format(name=rejection.name, namespace=namespace)
