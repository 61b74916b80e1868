"""Settings of the gate: GPU nodes take no pods before their GPUs are proven."""

from __future__ import annotations

from pydantic import Field

from gpuboot.config.settings.base import Model


class Gate(Model):
    """GPU nodes that are new, upgraded or rebooted take no pods before their GPUs are proven."""

    enabled: bool = Field(
        False,
        description="Keep the taint `gpuboot.io/unproven:NoSchedule` on such nodes (docs/gate.md).",
    )
    renew_h: int = Field(
        24,
        ge=1,
        description="Hours after which a proof is renewed on the GPUs that no pod holds. One that "
        "fails then closes its node for new pods.",
    )
