"""Fake hosts that answer a batch of facts as they answer each fact alone.

Import it in an inventory of fake hosts.
"""

from __future__ import annotations

import re

from pyinfra.connectors.fake import FakeConnector
from pyinfra.connectors.util import CommandOutput, OutputLine

from tests.noise import own

_PART = re.compile(
    r"^\( (.*?)\n\); printf '\\n(##gpuboot-fact##)%s %s\\n' (\d+) \$\?$", re.S | re.M
)

_NOTHING = [OutputLine("stdout", line) for line in own([])]
_alone = FakeConnector._lookup_response


def _lookup(self: FakeConnector, command_str: str) -> tuple[bool, CommandOutput]:
    parts = _PART.findall(command_str)
    if not parts:
        return _alone(self, command_str)
    output: list[OutputLine] = []
    for part, mark, number in parts:
        done, said = _alone(self, part)
        output += list(said) or _NOTHING
        output.append(OutputLine("stdout", f"{mark}{number} {0 if done else 1}"))
    return True, CommandOutput(output)


FakeConnector._lookup_response = _lookup  # type: ignore[method-assign]
