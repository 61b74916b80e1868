"""An API server that does not answer, as the facts that ask it print that."""

from __future__ import annotations

from tests.noise import framed_lines

# by a part of their commands
ANSWERS = {
    "Asks a cluster's API server": framed_lines(
        ["error\tcurl: (7) Failed to connect to 10.0.0.11 port 6443", "end\tok"]
    )
}
