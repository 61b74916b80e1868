"""Alerts on the GPU's memory: ECC errors, row remapping, retired pages."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import ON_GPU, Alert
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, level
from gpuboot.monitoring.rules.recording_xid import TOTAL, UNREPAIRED

_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
_PENDING = "DCGM_FI_DEV_ROW_REMAP_PENDING"
_ROWS = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
_CORRECTABLE_ROWS = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
_CORRECTED = f"sum by ({GPU}) (increase(gpu:ecc_sbe:total[1d])) > {{threshold}}"
_MEMORY_XIDS = "48|94|95|140"
_MIG_INSTANCES = 'DCGM_FI_DEV_SM_CLOCK{GPU_I_ID!=""}'


def _under_mig(codes: str, field: str) -> str:
    """What XIDs tell of GPUs that are cut into instances, and of which the field says nothing."""
    xids = f'{{xid=~"{codes}"}} > 0'
    return (
        f"or max by ({GPU}) ({TOTAL}{xids} or {UNREPAIRED}{xids})\n"
        f"  and on (node, UUID) {_MIG_INSTANCES} unless on (node, UUID) {field} < {BLANK_VALUE}"
    )


ALERTS = [
    Alert(
        name="GPUUncorrectableECC",
        severity="critical",
        action="reset",
        expr=level("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") + " > {threshold}",
        threshold=0,
        summary=f"Uncorrected memory errors on {ON_GPU}",
        description="{{ $value }} since the last reset of {{ $labels.UUID }}; results of programs "
        "that ran there may be wrong.",
    ),
    Alert(
        name="GPUCorrectableECCRate",
        severity="info",
        expr=_CORRECTED,
        hold_for="1h",
        threshold=1000,
        summary=f"Many corrected memory errors on {ON_GPU}",
        description='{{ $value | printf "%.0f" }} in a day on {{ $labels.UUID }}. Nothing is '
        "lost; it is a trend to watch.",
    ),
    Alert(
        name="GPUMemoryDegrading",
        severity="warning",
        action="reset",
        expr=f"{_CORRECTED}\nand on ({GPU}) (\n  {level(_CORRECTABLE_ROWS)} > 0\n"
        f"  or {level(_ROWS)} > 0\n  or {level(_PENDING)} == 1\n)",
        hold_for="10m",
        threshold=1000,
        summary=f"{ON_GPU} corrects many memory errors, and rows of it are remapped",
        description='{{ $value | printf "%.0f" }} corrected errors in a day on {{ $labels.UUID }}.',
    ),
    Alert(
        name="GPURowRemapFailure",
        severity="critical",
        action="replace",
        expr=level(_FAILURE) + " == 1\n" + _under_mig("64", _FAILURE),
        summary=f"A memory row of {ON_GPU} could not be remapped",
        description="NVIDIA's criterion for replacement. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPURowRemapPending",
        severity="warning",
        action="reset",
        expr=level(_PENDING) + " == 1\n" + _under_mig("63", _PENDING),
        hold_for="10m",
        summary=f"A row remap of {ON_GPU} waits for a reset",
        description="Until {{ $labels.UUID }} is reset, the damaged row stays in use.",
    ),
    Alert(
        name="GPURowRemapUnseen",
        severity="info",
        action="investigate",
        expr=_under_mig(_MEMORY_XIDS, _FAILURE).removeprefix("or "),
        summary=f"Memory errors on {ON_GPU}, which reports no row remaps under MIG",
        description="Whether a row was remapped, waits for a reset or could not be remapped is "
        "not known. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPURemappedRowsGrowing",
        severity="warning",
        action="investigate",
        # by UUID alone: a reboot may renumber GPUs, and a GPU may move to another server
        expr=level(_ROWS)
        + f"\n  - on (UUID) group_left min by (UUID) (min_over_time({_ROWS}[7d]) < {BLANK_VALUE})"
        " > {threshold}",
        threshold=0,
        summary=f"Memory of {ON_GPU} wears out",
        description="{{ $value }} rows were remapped after uncorrectable errors in 7 days on "
        "{{ $labels.UUID }}.",
    ),
    Alert(
        name="GPURemapBanksExhausted",
        severity="warning",
        action="investigate",
        expr=level("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE") + " > {threshold}",
        threshold=0,
        summary=f"{ON_GPU} has no spare rows left in a memory bank",
        description="The next bad row in one of these {{ $value }} banks cannot be repaired. "
        "{{ $labels.UUID }}",
    ),
    Alert(
        name="GPURetiredPages",
        severity="warning",
        action="reset",
        expr=level("DCGM_FI_DEV_RETIRED_PENDING")
        + " > 0\nor "
        + level("DCGM_FI_DEV_RETIRED_SBE")
        + "\n  + "
        + level("DCGM_FI_DEV_RETIRED_DBE")
        + " >= {threshold}",
        hold_for="10m",
        threshold=60,
        summary=f"Retired memory pages on {ON_GPU}",
        description="Pages wait for a reset to be retired, or nearly all places are taken. "
        "{{ $labels.UUID }}",
    ),
    Alert(
        name="GPUSramThreshold",
        severity="critical",
        action="replace",
        expr=level("DCGM_FI_DEV_THRESHOLD_SRM") + " == 1",
        summary=f"Too many SRAM errors on {ON_GPU}",
        description="The GPU's own threshold for replacement is exceeded. {{ $labels.UUID }}",
    ),
    Alert(
        name="GPUMemoryUnrepairable",
        severity="critical",
        action="replace",
        expr=level("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG") + " == 1",
        summary=f"Memory of {ON_GPU} cannot be repaired",
        description="The GPU says so itself. {{ $labels.UUID }}",
    ),
]
