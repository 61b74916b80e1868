"""Alerts on the GPU's memory: ECC errors, row remapping, retired pages."""

from __future__ import annotations

from gpuboot.monitoring.rules.alert import (
    DCGM,
    DRAIN,
    KERNEL_LOG,
    ON_GPU,
    OWN_SOURCE,
    REPLACE,
    RESET_STEPS,
    VERIFY,
    Alert,
)
from gpuboot.monitoring.rules.promql import BLANK_VALUE, GPU, level
from gpuboot.monitoring.rules.recording_xid import TOTAL, UNREPAIRED

_ECC = "Counts, on the node: `nvidia-smi -q -d ECC -i UUID`"
_REMAP = "Remapped rows, on the node: `nvidia-smi -q -d ROW_REMAPPER -i UUID`"
_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
_PENDING = "DCGM_FI_DEV_ROW_REMAP_PENDING"
_ROWS = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
_CORRECTABLE_ROWS = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
_CORRECTED = f"sum by ({GPU}) (increase(gpu:ecc_sbe:total[1d])) > {{threshold}}"
_GUIDE = "NVIDIA's GPU memory error management guide"
_BY_XID = (
    "Under MIG neither driver nor `nvidia-smi -q` reports remaps (they say N/A): there XID {xid}, "
    "counted since the exporter started, or in the last day and not repaired, stands in for it."
)
_MEMORY_XIDS = "48|94|95|140"
_MIG_INSTANCES = 'DCGM_FI_DEV_SM_CLOCK{GPU_I_ID!=""}'


def _under_mig(codes: str, field: str) -> str:
    """What XIDs tell of GPUs that are cut into instances, and of which the field says nothing."""
    xids = f'{{xid=~"{codes}"}} > 0'
    return (
        f"or max by ({GPU}) ({TOTAL}{xids} or {UNREPAIRED}{xids})\n"
        f"  and on (node, UUID) {_MIG_INSTANCES} unless on (node, UUID) {field} < {BLANK_VALUE}"
    )


_REPLACE_STEPS = (
    DRAIN,
    "Leave the node cordoned and have the GPU replaced: NVIDIA takes this as reason enough. "
    "Attach the output of `nvidia-bug-report.sh`.",
    "With the new GPU in: `gpuboot verify INVENTORY`, then `kubectl uncordon NODE`.",
)

ALERTS = [
    Alert(
        name="GPUUncorrectableECC",
        severity="critical",
        component="gpu",
        action="reset",
        expr=level("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") + " > {threshold}",
        threshold=0,
        unit="uncorrected errors since the last reset",
        summary=f"Uncorrected memory errors on {ON_GPU}",
        description="{{ $value }} since the last reset of {{ $labels.UUID }}; results of programs "
        "that ran there may be wrong.",
        meaning="The GPU found memory errors that ECC could not correct. The count returns to 0 "
        "with the next reset, so the alert looks at the count and not at its rise: a GPU that "
        "started with errors is found too.",
        reason="The program that hit the error is gone. The damaged memory row is replaced only by "
        "a reset; until then other programs may hit it.",
        check=(_ECC, _REMAP, KERNEL_LOG),
        remedy=(*RESET_STEPS, "Errors again within days: see GPURemappedRowsGrowing."),
        source=f"{DCGM}; NVIDIA's GPU memory error management guide",
    ),
    Alert(
        name="GPUCorrectableECCRate",
        severity="info",
        component="gpu",
        action="none",
        expr=_CORRECTED,
        hold_for="1h",
        threshold=1000,
        unit="corrected errors in a day",
        summary=f"Many corrected memory errors on {ON_GPU}",
        description="{{ $value | printf \"%.0f\" }} in a day on {{ $labels.UUID }}. Nothing is "
        "lost; it is a trend to watch.",
        meaning="ECC corrects single bit errors; no program notices. So many in a day are unusual.",
        reason="Memory that wears out shows first by such errors. With remapped rows beside them "
        "it is GPUMemoryDegrading.",
        check=(_ECC, _REMAP, "Trend: `increase(gpu:ecc_sbe:total{UUID=\"UUID\"}[1d])`"),
        remedy=(
            "Nothing now. When GPURemappedRowsGrowing fires for the same GPU, plan its "
            "replacement.",
        ),
        source=f"The number is {OWN_SOURCE}: NVIDIA names no limit for corrected errors",
    ),
    Alert(
        name="GPUMemoryDegrading",
        severity="warning",
        component="gpu",
        action="reset",
        expr=f"{_CORRECTED}\nand on ({GPU}) (\n  {level(_CORRECTABLE_ROWS)} > 0\n"
        f"  or {level(_ROWS)} > 0\n  or {level(_PENDING)} == 1\n)",
        hold_for="10m",
        threshold=1000,
        unit="corrected errors in a day, on a GPU with remapped rows",
        summary=f"{ON_GPU} corrects many memory errors, and rows of it are remapped",
        description="{{ $value | printf \"%.0f\" }} corrected errors in a day on "
        "{{ $labels.UUID }}.",
        meaning="ECC corrects very many single bit errors, and the GPU has exchanged rows of its "
        "memory for spare ones, or will with the next reset. Under MIG rows are not reported (see "
        "GPURowRemapUnseen).",
        reason="Each error is corrected, so no program notices. But the memory wears out: a bank "
        "has eight spare rows, and once they are used up the next uncorrectable error is the end "
        "of the GPU. There is time to plan.",
        check=(_REMAP + " (pending, and how many spare rows the banks have)", _ECC,
               "Trend: `increase(gpu:ecc_sbe:total{UUID=\"UUID\"}[1d])`, "
               f"`{_CORRECTABLE_ROWS}{{UUID=\"UUID\"}}`"),
        remedy=(
            "Within days, when the GPU is free: reset it, which makes pending remaps take effect.",
            *RESET_STEPS[:-1],
            "The flood goes on after the reset, or rows grow week by week: have the GPU tested by "
            "NVIDIA's field diagnostic, or `dcgmi diag -r 3` on the drained node, and plan its "
            "replacement. NVIDIA exchanges it once GPURowRemapFailure fires.",
        ),
        source=f"{_GUIDE}: remaps take effect with a reset; the failure flag comes with the ninth "
        "row of a bank, a row remapped twice, or 512 rows; of corrected errors it names no "
        f"limit, and the XID catalog has the GPU used on after XID 92. The number is {OWN_SOURCE}",
    ),
    Alert(
        name="GPURowRemapFailure",
        severity="critical",
        component="gpu",
        action="replace",
        expr=level(_FAILURE) + " == 1\n" + _under_mig("64", _FAILURE),
        summary=f"A memory row of {ON_GPU} could not be remapped",
        description="NVIDIA's criterion for replacement. {{ $labels.UUID }}",
        meaning="The GPU was to replace a damaged memory row by a spare one and could not. "
        + _BY_XID.format(xid="64"),
        reason="The damaged row stays in use. The next error there ends the program that uses it.",
        check=(_REMAP, _ECC),
        remedy=_REPLACE_STEPS,
        source="NVIDIA's criterion for RMA (GPU memory error management guide; gpud uses it too)",
    ),
    Alert(
        name="GPURowRemapPending",
        severity="warning",
        component="gpu",
        action="reset",
        expr=level(_PENDING) + " == 1\n" + _under_mig("63", _PENDING),
        hold_for="10m",
        summary=f"A row remap of {ON_GPU} waits for a reset",
        description="Until {{ $labels.UUID }} is reset, the damaged row stays in use.",
        meaning="A damaged memory row will be exchanged for a spare one at the next reset. "
        + _BY_XID.format(xid="63"),
        reason="Programs may still hit the damaged row. There is time until the next maintenance.",
        check=(_REMAP, KERNEL_LOG),
        remedy=(
            "It can wait for the next maintenance, or for a time when the GPU is free. Then:",
            *RESET_STEPS,
        ),
        source="NVIDIA's GPU memory error management guide",
    ),
    Alert(
        name="GPURowRemapUnseen",
        severity="info",
        component="gpu",
        action="investigate",
        expr=_under_mig(_MEMORY_XIDS, _FAILURE).removeprefix("or "),
        summary=f"Memory errors on {ON_GPU}, which reports no row remaps under MIG",
        description="Whether a row was remapped, waits for a reset or could not be remapped is "
        "not known. {{ $labels.UUID }}",
        meaning="The GPU logged an uncorrectable memory error (XID 48, 94, 95 or 140). While it is "
        "cut into MIG instances, driver, `nvidia-smi -q` and DCGM say N/A of its remapped rows, "
        "so that GPURemappedRowsGrowing and GPURemapBanksExhausted cannot fire, and "
        "GPURowRemapPending and GPURowRemapFailure only by XID 63 and 64.",
        reason="Silence of those alerts would be taken for health.",
        check=(KERNEL_LOG + " (63: a row was remapped; 64: it could not be)", _ECC,
               "With MIG off, in a maintenance: " + _REMAP),
        remedy=(
            "At the next maintenance: drain, switch MIG off (`nvidia-smi -i UUID -mig 0`), read "
            "the remapped rows, and switch it on again. The reset that belongs to it also makes a "
            "pending remap take effect.",
            VERIFY,
        ),
        source="nvidia-smi -q under MIG says N/A: A100 (telegraf's testdata a100-sxm4-v12.xml), "
        "H100 and H200 (nvidia_gpu_exporter's captures, driver 590.48.01)",
    ),
    Alert(
        name="GPURemappedRowsGrowing",
        severity="warning",
        component="gpu",
        action="investigate",
        # by UUID alone: a reboot may renumber GPUs, and a GPU may move to another server
        expr=level(_ROWS)
        + f"\n  - on (UUID) group_left min by (UUID) (min_over_time({_ROWS}[7d]) < {BLANK_VALUE})"
        " > {threshold}",
        threshold=0,
        unit="rows in 7 days",
        summary=f"Memory of {ON_GPU} wears out",
        description="{{ $value }} rows were remapped after uncorrectable errors in 7 days on "
        "{{ $labels.UUID }}.",
        meaning="More rows were remapped after uncorrectable errors within a week. The count is "
        "kept in the GPU itself and survives resets and reboots. Under MIG it is not reported "
        "(see GPURowRemapUnseen).",
        reason="One row is chance. Several in a week mean that the GPU is about to fail.",
        check=(_REMAP, _ECC, "Banks without spares: see GPURemapBanksExhausted"),
        remedy=(
            "A single row, first time: nothing, beyond a reset if GPURowRemapPending says so.",
            "Growing week by week: drain the node, run `dcgmi diag -r 3`, and plan the GPU's "
            "replacement.",
            VERIFY,
        ),
        source=f"NVIDIA's GPU memory error management guide; the window is {OWN_SOURCE}",
    ),
    Alert(
        name="GPURemapBanksExhausted",
        severity="warning",
        component="gpu",
        action="investigate",
        expr=level("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE") + " > {threshold}",
        threshold=0,
        unit="memory banks without spare rows",
        summary=f"{ON_GPU} has no spare rows left in a memory bank",
        description="The next bad row in one of these {{ $value }} banks cannot be repaired. "
        "{{ $labels.UUID }}",
        meaning="All spare rows of at least one memory bank are used up. Under MIG it is not "
        "reported (see GPURowRemapUnseen).",
        reason="It works now. The next damaged row in that bank is a GPURowRemapFailure.",
        check=(_REMAP,),
        remedy=("Order a replacement now, and exchange the GPU at the next maintenance.",),
        source="NVIDIA's GPU memory error management guide",
    ),
    Alert(
        name="GPURetiredPages",
        severity="warning",
        component="gpu",
        action="reset",
        expr=level("DCGM_FI_DEV_RETIRED_PENDING")
        + " > 0\nor "
        + level("DCGM_FI_DEV_RETIRED_SBE")
        + "\n  + "
        + level("DCGM_FI_DEV_RETIRED_DBE")
        + " >= {threshold}",
        hold_for="10m",
        threshold=60,
        unit="retired pages; 63 is the most the GPU can keep",
        summary=f"Retired memory pages on {ON_GPU}",
        description="Pages wait for a reset to be retired, or nearly all places are taken. "
        "{{ $labels.UUID }}",
        meaning="GPUs before Ampere retire damaged pages of memory. Either some wait for a "
        "reset, or almost all places for them are taken.",
        reason="A page that waits is still in use. Beyond 63 none can be retired any more.",
        check=("Pages, on the node: `nvidia-smi -q -d PAGE_RETIREMENT -i UUID`",),
        remedy=(*RESET_STEPS, "60 or more retired pages: have the GPU replaced."),
        source="DCGM's limit of 63 (dcgm GPU hardware limits), with a margin",
    ),
    Alert(
        name="GPUSramThreshold",
        severity="critical",
        component="gpu",
        action="replace",
        expr=level("DCGM_FI_DEV_THRESHOLD_SRM") + " == 1",
        summary=f"Too many SRAM errors on {ON_GPU}",
        description="The GPU's own threshold for replacement is exceeded. {{ $labels.UUID }}",
        meaning="Uncorrectable errors in the GPU's on-chip memory passed the limit that the GPU "
        "keeps for it. SRAM has no spare rows.",
        reason="It will happen again, and each time the programs on this GPU die.",
        check=(_ECC, "`nvidia-smi -q -i UUID | grep -i -A3 'SRAM Threshold'`"),
        remedy=(
            DRAIN,
            "Run NVIDIA's field diagnostic on the node, or `dcgmi diag -r 3` where you lack it.",
            REPLACE,
        ),
        source="NVIDIA's GPU memory error management guide",
    ),
    Alert(
        name="GPUMemoryUnrepairable",
        severity="critical",
        component="gpu",
        action="replace",
        expr=level("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG") + " == 1",
        summary=f"Memory of {ON_GPU} cannot be repaired",
        description="The GPU says so itself. {{ $labels.UUID }}",
        meaning="The GPU ran out of ways to repair its memory.",
        reason="Errors will go on. Nothing but another GPU helps.",
        check=(_REMAP, _ECC),
        remedy=_REPLACE_STEPS,
        source="DCGM 4.6, field 1507",
    ),
]  # fmt: skip
