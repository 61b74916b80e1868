"""What the commands of checks that are one file print on a host, by one command."""

import shlex
from collections.abc import Mapping

from deploys.engine.framed import Framed
from deploys.parts.driver.nvidia_fact import BOUNDED
from gpuboot.hosts.fact_output import Fields
from gpuboot.verify.checks.one_file import CommandOutput, HostCheck
from gpuboot.verify.checks.one_file_checks import HOST_CHECKS

# each has its own time, so that one that hangs keeps none of the others
_CHECK_COMMAND = """\
bounded {seconds} sh -c {command} |
  while IFS= read -r line; do printf '%s\\t%s\\n' {name} "$line"; done"""
_EXIT = "exit="


class HostChecks(Framed[Mapping[str, CommandOutput]]):
    """Name of a check -> what its command printed."""

    default = dict

    def command(self) -> str:
        return BOUNDED + "\n".join(map(_script, HOST_CHECKS))

    def process(self, output: list[str]) -> Mapping[str, CommandOutput]:
        lines = Fields(output, last=None)
        names = [check.link.name for check in HOST_CHECKS]
        return {name: _parse_output(lines.raw(name)) for name in names if name in lines}


def _script(check: HostCheck) -> str:
    return _CHECK_COMMAND.format(
        seconds=check.timeout_s,
        command=shlex.quote(f"exec 2>/dev/null; {check.command}"),
        name=shlex.quote(check.link.name),
    )


def _parse_output(lines: list[str]) -> CommandOutput:
    """Raises ValueError where its last line is missing."""
    *output_lines, last = lines
    if not last.startswith(_EXIT):
        raise ValueError(f"the answer ends in {last[:80]!r}")
    return CommandOutput("\n".join(output_lines), int(last.removeprefix(_EXIT)))
