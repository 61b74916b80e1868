"""What refuses pods, by the API server's message."""

import re
from dataclasses import dataclass
from typing import Literal

from gpuboot.config.tables import read_table

Kind = Literal[
    "webhook", "untrusted-webhook", "silent-webhook", "busy", "policy", "quota", "pod-security",
    "limit-range", "priority-class", "runtime-class", "service-account", "namespace", "conversion",
]  # fmt: skip

# Source: Kubernetes: admission/plugin/webhook/errors, plugin/pkg/admission/{resourcequota,
# limitranger,security/podsecurity,serviceaccount}, pkg/registry/core/pod.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("conversion", r"conversion webhook for (?P<name>[^ ,]+, Kind=\w+) failed"),
    ("webhook", r'admission webhook "(?P<name>[^"]+)" denied the request'),
    ("untrusted-webhook", r'failed calling webhook "(?P<name>[^"]+)".*x509: '),
    ("silent-webhook", r'failed calling webhook "(?P<name>[^"]+)"'),
    ("busy", r"(?P<name>[Tt]oo many requests)(?:, please try| and has asked)"),
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


@dataclass(frozen=True)
class Remedy:
    """What a person does about a refusal; `{name}` is of what refuses, `{namespace}` of the pods.

    + subject: what refuses; action: what to do; command: what to type for it, or to see more
    """

    subject: str
    action: str
    command: str


def _remedies() -> dict[str, Remedy]:
    return {kind: Remedy(**row) for kind, row in read_table("cluster/refusals.toml").items()}


REMEDIES = _remedies()


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


def remedy(message: str, namespace: str = "") -> str:
    """What a person does about a refusal; "" where the message names nothing that refuses.

    + message: as of `refusal`
    + namespace: of the pods; "" where it is removed by now, as a verification's are
    """
    rejection = refusal(message)
    if rejection is None:
        return ""
    item = REMEDIES[rejection.kind]
    text = f"{item.subject}: {item.action}"
    if namespace or "{namespace}" not in item.command:
        text += f" (`{item.command}`)"
    return text.format(name=rejection.name, namespace=namespace)
