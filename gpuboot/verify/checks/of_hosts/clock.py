"""The link `clock`: the host has the time of the machine that asks.

Where it has not, its kubelet's reports look old or come from the future, new certificates are not
valid yet, and what Prometheus or a log says of it stands at another time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuboot.hosts.host_clock import skew
from gpuboot.verify.checks.one_file import CheckVerdict, CommandOutput, HostCheck, Link

# a kubelet's report counts as missing after 40 s
_MOST_S = 30.0
_TIME = re.compile(r"(\d{10}(?:\.\d+)?)(?:\.%N)?")  # busybox' date has no nanoseconds
_REMEDY = (
    "set the clock: `timedatectl set-ntp true`, and see `chronyc tracking`, on whichever of the "
    "two is wrong"
)


def _evaluate(gpus: Mapping[str, str], output: CommandOutput) -> list[CheckVerdict]:
    match = _TIME.fullmatch(output.text.strip())
    if not match or not output.answered:
        detail = f"`date` says {output.text.strip()[:60]!r}"
        return [CheckVerdict(status="unknown", detail=detail, remedy="run `date` on the node")]
    off = skew(float(match[1]), output.requested, output.answered)
    if abs(off) > _MOST_S:
        which = "ahead of" if off > 0 else "behind"
        detail = f"its clock is {abs(off):.0f} s {which} this machine's"
        return [CheckVerdict(status="fail", detail=detail, remedy=_REMEDY)]
    return [CheckVerdict(status="pass", detail=f"within {_MOST_S:g} s")]


CHECK = HostCheck(
    link=Link(
        name="clock",
        passes="the host has the right time",
        facts="`date` of the host; the clock of the machine that verifies",
        fails=f"they differ by more than {_MOST_S:g} s",
        remedy="set the clock",
        subject="card",
        docker=True,
    ),
    behind="runtime",
    command="date +%s.%N",
    evaluate=_evaluate,
)
