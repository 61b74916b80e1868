"""What refuses an object that Kubernetes' controllers create, out of an event's message.

Sources of the texts: kubernetes v1.36, apiserver/pkg/admission/plugin/webhook and policy/validating,
plugin/pkg/admission (resourcequota, limitranger, podsecurity, serviceaccount, priority,
runtimeclass, namespace/lifecycle). They stand in events FailedCreate of ReplicaSets, DaemonSets,
StatefulSets and Jobs, after "Error creating: " or "create Pod NAME in StatefulSet NAME failed
error: ".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

RefusalKind = Literal[
    "webhook",
    "webhook-unreachable",
    "admission-policy",
    "pod-security",
    "limit-range",
    "quota",
    "service-account",
    "priority-class",
    "runtime-class",
    "namespace-terminating",
]


@dataclass(frozen=True)
class Refusal:
    """What refuses objects.

    + kind: which of the API server's checks
    + name: of the object that refuses, or that does not exist; "" where the message has none
    + remedy: what to do
    + command: shows the object to correct; `NAMESPACE` stands for that of the refused object
    """

    kind: RefusalKind
    name: str
    remedy: str
    command: str


_WEBHOOKS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"
# kind: pattern, whose group `name` is the object's name; remedy; command
_KINDS: dict[RefusalKind, tuple[str, str, str]] = {
    "webhook-unreachable": (
        r'failed calling webhook "(?P<name>[^"]+)"',
        "start the service behind the admission webhook {name} again, or remove its configuration",
        _WEBHOOKS,
    ),
    "webhook": (
        r'admission webhook "(?P<name>[^"]+)" denied the request',
        "do what the admission webhook {name} demands, or remove its configuration",
        _WEBHOOKS,
    ),
    "admission-policy": (
        r"ValidatingAdmissionPolicy '(?P<name>[^']+)'.* denied request",
        "do what the ValidatingAdmissionPolicy {name} demands, or remove its binding",
        "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings",
    ),
    "pod-security": (
        r'violates PodSecurity "(?P<name>[^"]+)"',
        "label the namespace with the pod security level that its pods need "
        "(pod-security.kubernetes.io/enforce), or change the pods; {name} is enforced",
        "kubectl get namespace NAMESPACE --show-labels",
    ),
    "quota": (
        r"(?:exceeded|failed) quota: (?P<name>[^,:]+)",
        "end something in the namespace, or raise its quota {name}",
        "kubectl -n NAMESPACE describe resourcequota",
    ),
    "limit-range": (
        r"(?:minimum|maximum) [\w./-]+ usage per (?P<name>Pod|Container) is "
        r"|[\w./-]+ max limit to request ratio per (?P<ratio>Pod|Container) is ",
        "correct the namespace's LimitRange, or the pods' requests and limits",
        "kubectl -n NAMESPACE describe limitrange",
    ),
    "service-account": (
        r"error looking up service account (?P<name>[^\s:]+): .*not found",
        "create the ServiceAccount {name} again",
        "kubectl -n NAMESPACE get serviceaccounts",
    ),
    "priority-class": (
        r"no PriorityClass with name (?P<name>\S+) was found",
        "create the PriorityClass {name} again",
        "kubectl get priorityclasses",
    ),
    "runtime-class": (
        r'RuntimeClass "(?P<name>[^"]+)" not found',
        "create the RuntimeClass {name} again",
        "kubectl get runtimeclasses",
    ),
    "namespace-terminating": (
        r"unable to create new content in namespace (?P<name>\S+) because it is being terminated",
        "let the deletion of the namespace {name} end: remove what its conditions name",
        "kubectl get namespace NAMESPACE -o yaml",
    ),
}
_PATTERNS = {kind: re.compile(pattern) for kind, (pattern, _, _) in _KINDS.items()}


def refusal(message: str) -> Refusal | None:
    """What refused an object; None for a message of something else.

    Webhooks and policies say what their authors like, so the first match in the text decides.
    """
    matches = [(match, kind) for kind, text in _PATTERNS.items() if (match := text.search(message))]
    if not matches:
        return None
    match, kind = min(matches, key=lambda item: item[0].start())
    name = "" if kind == "limit-range" else match["name"].strip()
    _, remedy, command = _KINDS[kind]
    return Refusal(kind, name, remedy.format(name=name), command)
