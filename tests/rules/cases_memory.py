"""Memory that wears out: corrected errors beside remapped rows."""

from __future__ import annotations

from tests.rules.model import G0, G1, HOLDER, Case, dcgm, values

_NAME = "GPUMemoryDegrading"
_SBE, _ROWS = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
_FLOOD = "0+200x90 18000x400"  # in steps of 10 minutes: 28,800 a day, until minute 900

CASES = [
    Case(_NAME, "a flood of corrected errors, a row remapped, and quiet for a day after it",
         {dcgm(_SBE): _FLOOD, dcgm(_ROWS): "0x12 1x480"}, {160: [G0], 900: [G0]},
         (100, 135, 2500), step=600),
    Case(_NAME, "rows were remapped long ago, or wait for a reset",
         {dcgm(_SBE): _FLOOD, dcgm("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"): "2x480",
          dcgm(_SBE, G1): _FLOOD, dcgm("DCGM_FI_DEV_ROW_REMAP_PENDING", G1): "1x480"},
         {120: [G0, G1]}, (20,), step=600),
    Case(_NAME, "a flood without a row is a trend", {dcgm(_SBE): _FLOOD, dcgm(_ROWS): "0x480"},
         silent=(160, 900), step=600),
    Case(_NAME, "a remapped row, and as many corrected errors as GPUs have",
         {dcgm(_SBE): "0+5x480", dcgm(_ROWS): "1x480"}, silent=(1500, 4000), step=600),
    Case(_NAME, "the exporter restarts and pods come and go: nothing new",
         {dcgm(_SBE, **HOLDER): values((90000, 600), (None, 10), step=600),
          dcgm(_SBE): values((None, 620), (90000, 900), step=600), dcgm(_ROWS): "1x200"},
         silent=(500, 620, 700, 900), step=600, restart=True),
]  # fmt: skip
