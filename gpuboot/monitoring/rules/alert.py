"""What an alert is: the rule Prometheus evaluates. What a person does then: `runbooks.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpuboot.config.settings.alerting import Severity
from gpuboot.monitoring.rules.requirements import Requirement

Component = Literal["gpu", "exporter", "cluster"]
# What brings the GPU back, for people and for automatic repair. `capacity`: more GPUs, or less
# demand. `none`: nothing is wrong with the GPU.
Action = Literal["none", "investigate", "drain", "reset", "reboot", "replace", "capacity"]


@dataclass(frozen=True)
class Alert:
    """An alert.

    + name: unique; also the name of its runbook
    + severity: critical: wakes somebody; warning: this working day; info: to be read some time
    + component: what it is about, for routes and inhibitions
    + action: an `Action`, or a Prometheus template that makes one of the alert's labels
    + expr: PromQL; `{threshold}` stands for the threshold
    + hold_for: how long it must hold before it fires
    + keep_for: how long it stays on after it ended ("" : not)
    + threshold: the number that a site may change
    + summary, description: one line, and what to know at once; Prometheus templates
    + requires: what it can never fire without
    + enabled: False where the settings leave it out
    """

    name: str
    severity: Severity
    expr: str
    summary: str
    description: str
    component: Component = "gpu"
    action: str = "none"
    hold_for: str = "0s"
    keep_for: str = ""
    threshold: float | None = None
    requires: Requirement = Requirement.NONE
    enabled: bool = True


def number(value: float) -> str:
    """A threshold as PromQL and people write it: 5 rather than 5.0."""
    return f"{value:g}"


# The way to every GPU alert's labels in a sentence.
ON_GPU = "GPU {{ $labels.gpu }} of {{ $labels.node }}"
