"""Fake hosts that answer a batch of facts as they answer each fact alone.

Import it in an inventory of fake hosts.
"""

from __future__ import annotations

import re

from pyinfra.connectors.fake import FakeConnector
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpuboot.hosts.fact_output import Answer, answer
from tests.noise import framed_lines, noisy

_PART = re.compile(
    r"^(?:\{ \( )?\( (.*?)\n\); printf '\\n(##gpuboot-fact##)%s %s\\n' (\d+) \$\?", re.S | re.M
)

_answer_single = FakeConnector._lookup_response


def _lookup(self: FakeConnector, command_str: str) -> tuple[bool, CommandOutput]:
    parts = _PART.findall(command_str)
    if not parts:
        return _answer_single(self, command_str)
    lines: list[str] = []
    noise: list[str] = []
    for part, mark, number in sorted(parts, key=lambda parsed: int(parsed[2])):
        success, output = _answer_single(self, part)
        parsed = answer(output.stdout_lines) if output.stdout_lines else Answer([], [])
        lines += [*parsed.lines, "", f"{mark}{number} {0 if success else 1}"]
        noise += parsed.noise
    frame = noisy if noise else framed_lines
    return True, CommandOutput([OutputLine("stdout", line) for line in frame(lines)])


FakeConnector._lookup_response = _lookup  # type: ignore[method-assign]
