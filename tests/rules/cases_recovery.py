"""What the driver says that a GPU needs."""

from __future__ import annotations

from tests.rules.model import G0, Case, dcgm, level, values

CASES = [
    *[
        Case(**{**vars(case), "fires": {
            minute: [{**labels, "gpu_action": "reboot"} for labels in alerts]
            for minute, alerts in case.fires.items()
        }})
        for case in level("GPURecoveryAction", "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
                          bad=2, good=0, hold=1)
    ],
    Case(
        "GPURecoveryAction",
        "drain and reset asks for a reset",
        {dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"): "4x20"},
        {5: [{**G0, "gpu_action": "reset"}]},
    ),
    Case(
        "GPURecoveryAction",
        "peer-to-peer traffic is to be drained: that is no reset",
        {dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"): "3x20"},
        {5: [{**G0, "gpu_action": "drain"}]},
    ),
    *[
        Case(
            "GPURecoveryAction",
            f"{meaning}, as drivers from R595 on ask for",
            {dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"): f"{number}x20"},
            {5: [{**G0, "gpu_action": action}]},
        )
        for number, action, meaning in (
            (5, "investigate", "recovery of the IMEX domain is no reset of this GPU"),
            (6, "reboot", "a reset of the bus"),
            (7, "reboot", "a reboot of the system"),
            (8, "investigate", "what nobody knows"),
        )
    ],
    Case(
        "GPURecoveryAction",
        "first a reset, then a reboot, and never nothing in between",
        {dcgm("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"): values((0, 5), (1, 10), (2, 10), (0, 5))},
        {
            **{minute: [{**G0, "gpu_action": "reset"}] for minute in (6.5, 14.5)},
            **{minute: [{**G0, "gpu_action": "reboot"}] for minute in (15, 15.5, 16, 24.5)},
        },
        (5, 25, 29),
    ),
]  # fmt: skip
