"""What the fact of a host says of DCGM's checks there, read from its rows."""

from __future__ import annotations

import pytest

from gpuboot.hosts.fact_output import Fields
from gpuboot.verify import dcgm_results
from gpuboot.verify.dcgm_results import DcgmVerdict
from tests.unit.evidence import uuid

GPU = uuid("gpu1", 0)
DBE = "DCGM_FR_VOLATILE_DBE_DETECTED"

ROWS = (
    f"dcgm_health\ttime\t1000\n"
    f"dcgm_health\t0\t{GPU}\t\tMEM\t20\ta DBE was detected\t{DBE}\n"
    f"dcgm_health\t\t\tSwitch 3\tNVSWITCH\t10\t\n"
    "dcgm_clock\t1060\nend\tok"
)


def test_rows_of_the_host_are_read() -> None:
    (parsed,) = dcgm_results.parse(Fields(ROWS.splitlines()))
    assert (parsed.check, parsed.age_s, parsed.is_stale) == ("health", 60, False)
    assert parsed.of(GPU) == (
        DcgmVerdict(subject="MEM", uuid=GPU, level=20, text="a DBE was detected", code=DBE),
    )
    assert len(parsed.verdicts) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("time\t1000", "time\t"),
        ("\t20\t", "\tbad\t"),
        ("\tMEM", ""),
        ("dcgm_clock", "clock"),
        (f"\ta DBE was detected\t{DBE}", ""),
    ],
)
def test_rows_that_are_not_whole_are_no_answer(old: str, new: str) -> None:
    assert dcgm_results.parse(Fields(ROWS.replace(old, new, 1).splitlines())) == ()
