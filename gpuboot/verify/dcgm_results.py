"""What DCGM's host engine said last of a node's GPUs, as `gpuboot-dcgm-check` left it there.

`templates/dcgm/dcgm-check.sh` writes these rows, and makes them of DCGM's JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuboot.hosts.dcgm_engine import CHECKS, DIAG_STALE_H, HEALTH_STALE_MIN
from gpuboot.hosts.fact_output import Fields

FAILS = 20  # 10 is a warning, 0 is well
_STALE_S = {"health": HEALTH_STALE_MIN * 60, "diag": DIAG_STALE_H * 3600}
_COLUMNS = (6, 7)  # of a diagnosis, and of health


@dataclass(frozen=True, kw_only=True)
class DcgmVerdict:
    """A verdict of DCGM.

    + subject: a health watch as the exporter calls it (`MEM`), or a test of a diagnosis
    + uuid: of the GPU; "" for what is no GPU, such as an NVSwitch
    + level: 0 well, 10 warning, 20 failure; text: what DCGM says of it
    + code: the error code that belongs to the text; "" for one that gpuboot does not know
    """

    subject: str
    uuid: str
    level: int
    text: str = ""
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class DcgmAnswer:
    """An answer of the host engine.

    + check: `health` or `diag`
    + age_s: since then by the node's own clock; below 0 where that was set back
    """

    check: str
    age_s: float
    verdicts: tuple[DcgmVerdict, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Whether a newer one ought to be there."""
        return abs(self.age_s) > _STALE_S[self.check]

    def of(self, uuid: str) -> tuple[DcgmVerdict, ...]:
        """The verdicts on one GPU."""
        return tuple(verdict for verdict in self.verdicts if verdict.uuid == uuid)


def parse(values: Fields) -> tuple[DcgmAnswer, ...]:
    """The answers in what `deploys/parts/driver/nvidia_fact.sh` printed that are whole."""
    clock = values.first("dcgm_clock")
    answers = [_answer(check, values.rows(f"dcgm_{check}"), clock) for check in CHECKS]
    return tuple(answer for answer in answers if answer is not None)


def _answer(check: str, rows: Sequence[Sequence[str]], clock: str) -> DcgmAnswer | None:
    try:
        (_, time), *verdicts = rows
        return DcgmAnswer(
            check=check,
            age_s=float(clock) - float(time),
            verdicts=tuple(map(_verdict, verdicts)),
        )
    except ValueError:
        return None


def _verdict(row: Sequence[str]) -> DcgmVerdict:
    if len(row) not in _COLUMNS:
        raise ValueError(f"{len(row)} columns")
    _, uuid, _, subject, level, text, *code = row
    return DcgmVerdict(subject=subject, uuid=uuid, level=int(level), text=text, code="".join(code))
