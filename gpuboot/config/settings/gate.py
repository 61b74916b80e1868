"""Settings of the gate: GPU nodes take no pods before their GPUs are proven."""

from pydantic import Field

from gpuboot.config.settings.base import Model


class Gate(Model):
    """GPU nodes that are new, upgraded or rebooted take no pods before their GPUs are proven."""

    enabled: bool = Field(
        False,
        description="Keep the taint `gpuboot.io/unproven:NoSchedule` on such nodes (docs/gate.md).",
    )
