"""Alerts on the verdict of driver and DCGM, and on heat, power and clocks."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import (
    DCGM,
    DRAIN,
    KERNEL_LOG,
    ON_GPU,
    OWN_SOURCE,
    PODS,
    REBOOT,
    REPLACE,
    RESET,
    RESET_STEPS,
    SMI,
    VERIFY,
    Alert,
)
from gpuboot.monitoring.rules.promql import GPU, level
from gpuboot.monitoring.rules.watches import GPU_JUDGED

_ACTION = "gpu:recovery_action:max"
_WATCH = "node, UUID, gpu, health_watch, health_error_code"
_RESTART_EXPORTER = (
    "Restart exporter and device plugin of the node (`kubectl delete pod`): DCGM keeps its "
    "verdict on an XID until its engine restarts, whatever was repaired."
)
_VERDICT = [
    Alert(
        name="GPURecoveryAction",
        severity="critical",
        component="gpu",
        action="{{ if eq $value 2.0 }}reboot{{ else if eq $value 3.0 }}drain"
        "{{ else }}reset{{ end }}",
        # held here and not by `for`: another action is another alert, and would wait again
        expr=f"{_ACTION} > 0 and min_over_time({_ACTION}[90s]) > 0",
        summary=f"The driver wants {ON_GPU} to be "
        "{{ if eq $value 1.0 }}reset{{ else if eq $value 2.0 }}rebooted with its node"
        "{{ else if eq $value 3.0 }}drained of peer-to-peer traffic{{ else }}drained and reset"
        "{{ end }}",
        description="Recovery action {{ $value }} of {{ $labels.UUID }}: 1 reset, 2 reboot, "
        "3 drain peer-to-peer, 4 drain and reset.",
        meaning="The driver itself has reported, for at least a minute, what this GPU needs. It "
        "is the best single signal there is: the driver knows more than any XID says.",
        reason="Until that is done the GPU cannot be trusted, and mostly cannot be used.",
        check=("On the node: `nvidia-smi -q -i UUID | grep -A4 'Recovery Action'`", KERNEL_LOG,
               PODS),
        remedy=(
            DRAIN,
            "1 or 4: " + RESET,
            "2: " + REBOOT,
            "3: end the jobs that use NVLink between this GPU and others; then look again.",
            VERIFY,
            REPLACE,
        ),
        source="NVIDIA's driver by DCGM field 1523 (DCGM 4.5 and driver 570 or newer)",
    ),
    Alert(
        name="GPUHealthFail",
        severity="critical",
        component="gpu",
        action="investigate",
        expr=f'max by ({_WATCH}) ({GPU_JUDGED}{{judged="critical"}})',
        hold_for="2m",
        summary=f"DCGM's health watch {{{{ $labels.health_watch }}}} fails on {ON_GPU}",
        description="{{ $labels.health_error_code }}. {{ $labels.UUID }}. What came from an XID "
        "stays failed until the exporter restarts.",
        meaning="DCGM watches each GPU (PCIe, NVLink, memory, inforom, driver …) and gives this "
        "one a FAIL, with an error code by which cards of this model are broken. DCGM also fails "
        "cards that are well; gpuboot's table of its codes (docs/dcgm.md) leaves those out, and "
        "heat and power, which have alerts of their own.",
        reason="DCGM fails a GPU for faults with which NVIDIA considers it unusable.",
        check=("`dcgmi health -s a`, wait a minute, then `dcgmi health -c -j`, where dcgmi is "
               "installed; its exit code tells nothing, read \"Overall Health\"", KERNEL_LOG, SMI),
        remedy=(
            "Another alert on the same GPU says more: follow its runbook first.",
            "health_watch ALL, or a code with XID in it: an XID that DCGM counts as devastating. "
            "Do what GPUXidFatal says.",
            *RESET_STEPS[:-1],
            _RESTART_EXPORTER,
            REPLACE,
        ),
        source=DCGM,
    ),
    Alert(
        name="GPUHealthWarn",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f'max by ({_WATCH}) ({GPU_JUDGED}{{judged="warning"}})',
        hold_for="10m",
        summary=f"DCGM's health watch {{{{ $labels.health_watch }}}} warns of {ON_GPU}",
        description="{{ $labels.health_error_code }}{{ if eq $value 20.0 }}, which DCGM calls a "
        "failure{{ end }}. {{ $labels.UUID }}",
        meaning="DCGM found something that does not stop the GPU but should not be, or that "
        "gpuboot's table of its error codes does not have (docs/dcgm.md). Verdicts that it only "
        "keeps from past XIDs are left out.",
        reason="Warnings become failures. There is time to look.",
        check=("`dcgmi health -c -j` where dcgmi is installed", SMI, KERNEL_LOG),
        remedy=("Find the cause by the name of the watch; heat and power: see GPUThermalThrottle "
                "and GPUPowerBrake.",),
        source=DCGM,
    ),
]  # fmt: skip

_RATIO = "gpu:throttle:ratio5m"
_EXPLAINED_SHARE = 0.1  # share of the time in which a reason explains a low clock
_CLOCKS = "Clocks and reasons, on the node: `nvidia-smi -q -d CLOCK,PERFORMANCE -i UUID`"
_HEAT = "Temperatures, on the node: `nvidia-smi -q -d TEMPERATURE -i UUID`; fans: `ipmitool sdr`"
_COOLING = (
    "Look at the neighbours: `topk(10, DCGM_FI_DEV_GPU_TEMP)`. All GPUs of the node or rack hot: "
    "room or fans. One GPU alone: dust, a blocked path, a dried out heat sink."
)
_THERMAL = [
    Alert(
        name="GPUThermalThrottle",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f'{_RATIO}{{reason="hw_thermal"}} > {{threshold}}\n'
        f'or {_RATIO}{{reason="sw_thermal"}} > 10 * {{threshold}}',
        hold_for="5m",
        threshold=0.01,
        unit="share of time slowed down by hardware for heat; ten times that by the driver",
        summary=f"{ON_GPU} is slowed down by heat",
        description="{{ $value | humanizePercentage }} of the time, {{ $labels.reason }}. "
        "{{ $labels.UUID }}",
        meaning="For part of the last minutes clocks were held down because of heat: by the "
        "hardware's emergency brake (hw_thermal), or by the driver (sw_thermal). Idle GPUs, "
        "whose clocks are low because they have no work, do not count.",
        reason="One slow GPU makes every GPU of the job wait for it.",
        check=(_HEAT, _CLOCKS, f"`{_RATIO}{{UUID=\"UUID\"}}`"),
        remedy=(_COOLING, "Until it is repaired, a lower power limit keeps clocks steady: "
                "`nvidia-smi -pl WATTS -i UUID`."),
        source=f"DCGM fields 1422 and 1423; gpud counts events instead; shares are {OWN_SOURCE}",
    ),
    Alert(
        name="GPUPowerBrake",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=f'{_RATIO}{{reason="power_brake"}} > {{threshold}}',
        hold_for="5m",
        threshold=0.01,
        unit="share of time",
        summary=f"The power brake slows {ON_GPU}",
        description="{{ $value | humanizePercentage }} of the time. The server's power supply asks "
        "for it. {{ $labels.UUID }}",
        meaning="Something outside of the GPU pulls the power brake: a failed or overloaded power "
        "supply, or the server's own management. The software power cap, normal under load, does "
        "not count.",
        reason="The GPU runs at a fraction of its speed, and the server is short of power.",
        check=("Power supplies: `ipmitool sdr type 'Power Supply'`, `ipmitool sel list | tail`",
               _CLOCKS),
        remedy=("Replace the failed power supply or restore its feed.",
                "All supplies well: look at the server's power cap in its management."),
        source=f"DCGM field 1424; the share is {OWN_SOURCE}",
    ),
    Alert(
        name="GPUThermalMarginLow",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=level("DCGM_FI_DEV_GPU_TEMP_LIMIT") + " < {threshold}",
        hold_for="5m",
        threshold=5,
        unit="degrees Celsius left before the GPU slows itself down",
        summary=f"{ON_GPU} is close to slowing down for heat",
        description="{{ $value }} degrees are left. {{ $labels.UUID }}",
        meaning="The distance to this model's own slowdown temperature is nearly gone. A fixed "
        "temperature would be wrong: models differ by 20 degrees.",
        reason="GPUThermalThrottle is next.",
        check=(_HEAT, "`DCGM_FI_DEV_GPU_TEMP_LIMIT`, whole cluster, lowest first: "
               "`bottomk(10, DCGM_FI_DEV_GPU_TEMP_LIMIT)`"),
        remedy=(_COOLING,),
        source=f"DCGM field 153 (T.Limit); the margin is {OWN_SOURCE}",
    ),
    Alert(
        name="GPUMemoryHot",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=level("DCGM_FI_DEV_MEMORY_TEMP")
        + " > ("
        + level("DCGM_FI_DEV_MEM_MAX_OP_TEMP")
        + " > 0)",
        hold_for="5m",
        summary=f"Memory of {ON_GPU} is too hot",
        description="{{ $value }} °C, above what its maker allows in operation. {{ $labels.UUID }}",
        meaning="The device memory is hotter than its highest operating temperature.",
        reason="Hot memory refreshes more, makes more errors and ages faster.",
        check=(_HEAT,),
        remedy=(_COOLING,),
        source="DCGM fields 140 and 151: the model's own limit",
    ),
    Alert(
        name="GPUClockStuckLow",
        severity="warning",
        component="gpu",
        action="reset",
        expr=level("DCGM_FI_DEV_SM_CLOCK")
        + "\n  / ("
        + level("DCGM_FI_DEV_MAX_SM_CLOCK")
        + f" > 0) < {{threshold}}\nand on ({GPU}) gpu:sm_active:avg5m > 0.5\n"
        + f"unless on ({GPU}) {_RATIO}{{reason!=\"sync_boost\"}} > {_EXPLAINED_SHARE}\n"
        + f"unless on ({GPU}) floor({level('DCGM_FI_DEV_CLOCKS_EVENT_REASONS')} / 4) % 2 == 1",
        hold_for="15m",
        threshold=0.5,
        unit="share of the highest SM clock",
        summary=f"{ON_GPU} works at {{{{ $value | humanizePercentage }}}} of its clock",
        description="It is busy, and its clock stays low. {{ $labels.UUID }}",
        meaning="The GPU has work (SMs more than half busy) but its clock does not rise above half "
        "of what it can, and neither its power limit nor heat or the power brake explains it: a "
        "T4 at its 70 W works at 585 of 1590 MHz by design. Heat and the power brake have alerts "
        "of their own.",
        reason="A GPU at half speed halves the speed of the whole job, and no other signal shows "
        "it.",
        check=(_CLOCKS, "Was a clock set? `nvidia-smi -q -d CLOCK -i UUID | grep -A2 Applications`",
               "What slows it, as the driver counts it: `gpu:throttle:ratio5m{UUID=\"UUID\"}`"),
        remedy=("A locked clock: `nvidia-smi -rgc -i UUID` and `-rac` unlock it.",
                *RESET_STEPS),
        source=f"Reasons: DCGM fields 112 (4: power cap) and 1420 to 1424; shares are {OWN_SOURCE}",
    ),
]  # fmt: skip

ALERTS = [*_VERDICT, *_THERMAL]
