"""Faults of simulated GPUs, and the alert that each must raise, at the right receiver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One thing that is broken, and what people must hear of it.

    + machine, gpu: where it is injected; gpu None: it concerns the machine as a whole
    + set: key and value of `gpu-sim set`, the fault tool of the lab's machines
    + undo: the `gpu-sim` verb that ends it: `clear`, `reset` or `repair`
    + alert: the alert that must arrive, with the labels that people act on
    + receiver: at which receiver, by severity
    + action: its label `gpu_action`
    + accompanying: alerts that the fault may raise as well, since they are true too
    """

    name: str
    machine: str
    gpu: int | None
    set: str
    undo: str
    alert: str
    receiver: str
    action: str
    accompanying: tuple[str, ...] = ()


# Ten faults on six GPUs, all at once: where two share a GPU, neither's alert silences the other's.
# A lost GPU silences its node's warnings, so that node has nothing but critical faults.
FAULTS = (
    Fault("GPU fell off the bus", "gpu1", None, "lost 1", "clear", "GPULost", "pagerduty",
          "reboot", accompanying=("GPUDeviceUnhealthy",)),
    Fault("uncorrectable ECC error", "gpu1", 1, "ecc_dbe 1", "repair", "GPUUncorrectableECC",
          "pagerduty", "reset", accompanying=("GPUHealthFail", "GPUHealthWarn")),
    Fault("row remap failed", "gpu1", 1, "row_remap_failure 1", "repair", "GPURowRemapFailure",
          "pagerduty", "replace", accompanying=("GPUHealthFail",)),
    Fault("fatal XID", "gpu2", 0, "xid 79", "repair", "GPUXidFatal", "pagerduty", "reboot",
          accompanying=("GPUHealthFail", "GPUDeviceUnhealthy")),
    Fault("too hot", "gpu2", 1, "temperature 85", "clear", "GPUThermalMarginLow", "slack",
          "investigate"),
    Fault("driver asks for a reset", "gpu2", 1, "recovery_action 1", "reset", "GPURecoveryAction",
          "pagerduty", "reset", accompanying=("GPUHealthFail",)),
    Fault("health watch fails", "gpu2", 2, "health_pcie 20", "clear", "GPUHealthFail",
          "pagerduty", "investigate"),
    Fault("NVLink fabric not up", "gpu2", 2, "fabric_status 2", "clear", "GPUFabricNotReady",
          "pagerduty", "investigate"),
    Fault("PCIe lanes lost", "gpu2", 3, "pcie_width 8", "clear", "GPUPcieWidthDegraded", "slack",
          "investigate"),
    Fault("row remap waits for a reset", "gpu2", 3, "row_remap_pending 1", "reset",
          "GPURowRemapPending", "slack", "reset"),
)  # fmt: skip

# Alerts wait for minutes before they fire, so that a hiccup wakes nobody; tests do not wait.
HOLD_FOR = {
    alert: {"hold_for": "10s"}
    for alert in (
        "GPULost",
        "GPUThermalMarginLow",
        "GPUHealthFail",
        "GPUFabricNotReady",
        "GPUPcieWidthDegraded",
        "GPURowRemapPending",
    )
}
