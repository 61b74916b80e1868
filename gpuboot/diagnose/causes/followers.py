"""What follows where a part of the cluster is missing, or its pods are refused: by its name."""

from __future__ import annotations

import re

_FOLLOW = (
    ("coredns|kube-dns", ("coredns-not-ready",)),
    (
        "nvidia|gpu",
        (
            *("device-plugin-missing", "gpu-unhealthy", "operand-unlabelled"),
            *("operator-crash-loop", "pending-resource"),
        ),
    ),
    ("flannel|kube-proxy", ("pod-network-missing",)),
    ("prometheus|monitoring", ("prometheus-down", "service-monitor-missing")),
    ("ServiceAccount", ("service-account-missing",)),
    ("PriorityClass", ("priority-class-missing",)),
    ("RuntimeClass", ("runtime-class-missing",)),
    ("", ("pod-crash-loop", "prometheus-target-down", "api-extension-unavailable")),
)
ALL = tuple(dict.fromkeys(cause for _, causes in _FOLLOW for cause in causes))
# of pods that are refused: no absence that a refusal tells of
OF_PODS = tuple(
    cause for cause in ALL if not cause.endswith(("-class-missing", "-account-missing"))
)


def followers(*names: str) -> tuple[str, ...]:
    """Ids of the causes that may follow from these objects' absence. + names: kind, path or both"""
    text = " ".join(names)
    return tuple(cause for part, causes in _FOLLOW if re.search(part, text) for cause in causes)


def of_refused(owner: str) -> tuple[str, ...]:
    """Ids of what may follow where pods are refused; () where no part of the cluster makes them.

    + owner: of the pods, as `namespace/name`
    """
    causes, of_any = followers(owner), _FOLLOW[-1][1]
    return causes if len(causes) > len(of_any) else ()
