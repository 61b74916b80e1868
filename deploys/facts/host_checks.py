"""What the commands of checks that are one file print on a host, by one command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from typing_extensions import override

from deploys.facts.framed import Framed
from deploys.facts.nvidia import BOUNDED
from gpuboot.fact_output import Fields
from gpuboot.verify.checks.host_check import HostCheck, Printed
from gpuboot.verify.checks.one_file_checks import HOST_CHECKS

# each has its own time, so that one that hangs keeps none of the others
_ONE = """\
bounded {seconds} sh -c {command} |
  while IFS= read -r line; do printf '%s\\t%s\\n' {name} "$line"; done"""
_EXIT = "exit="


class HostChecks(Framed[Mapping[str, Printed]]):
    """Name of a check -> what its command printed."""

    default = dict

    @override
    def command(self) -> str:
        return BOUNDED + "\n".join(map(_script, HOST_CHECKS))

    @override
    def process(self, output: list[str]) -> Mapping[str, Printed]:
        lines = Fields(output, last=None)
        names = [check.link.name for check in HOST_CHECKS]
        return {name: _printed(lines.raw(name)) for name in names if name in lines}


def _script(check: HostCheck) -> str:
    return _ONE.format(
        seconds=check.timeout_s,
        command=shlex.quote(f"exec 2>/dev/null; {check.command}"),
        name=shlex.quote(check.link.name),
    )


def _printed(lines: list[str]) -> Printed:
    """Raises ValueError where its last line is missing."""
    *said, last = lines
    if not last.startswith(_EXIT):
        raise ValueError(f"the answer ends in {last[:80]!r}")
    return Printed("\n".join(said), int(last.removeprefix(_EXIT)))
