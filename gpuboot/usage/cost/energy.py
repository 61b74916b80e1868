"""Divides the energy of GPUs among the pods that held them and the reasons that nothing did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuboot.usage.cost.readings import Key


@dataclass(frozen=True)
class Energy:
    """What a node's GPUs took in a step.

    + total: kWh
    + pods: (namespace, pod) -> its share of the power, 0 to 1
    """

    total: float = 0.0
    pods: Mapping[Key, float] = field(default_factory=dict)


def shared_out(
    energy: Energy, held_minutes: Mapping[Key, float], idle: Mapping[str, float]
) -> dict[Key | str, float]:
    """kWh of each pod and of each reason for which GPUs were held by nobody; they add up to all.

    Pods get what was measured while they held GPUs. The rest belongs to GPUs that nobody held;
    where there were none, to pods whose first or last samples did not name them. Where nobody
    measured whose power it was, all GPUs count alike.

    + held_minutes: (namespace, pod) -> GPU minutes; idle: reason -> GPU minutes
    """
    shares: dict[Key | str, float] = {}
    for pod, part in energy.pods.items():
        if pod in held_minutes:
            shares[pod] = energy.total * part
    remainder = energy.total - sum(shares.values())
    recipients = {} if energy.pods and sum(idle.values()) > 0 else held_minutes
    total_minutes = sum(recipients.values()) + sum(idle.values())
    for pod, minutes in recipients.items():
        shares[pod] = shares.get(pod, 0.0) + remainder * minutes / total_minutes
    for reason, minutes in idle.items():
        shares[reason] = remainder * minutes / total_minutes
    return shares
