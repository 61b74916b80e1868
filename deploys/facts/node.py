"""The one compound fact about a host: everything preflight and the phases look at."""

from __future__ import annotations

from importlib import resources

from typing_extensions import override

from deploys.facts import remains, secure_boot
from deploys.facts.framed import Framed
from gpuboot.hosts.node_state import NodeState, parse

_FOLDER = resources.files("deploys.facts")
# each defines a function that node.sh calls
_SCRIPTS = ("dkms", "folders", "module_loading", "packet_filter")
FUNCTIONS = (
    secure_boot.FUNCTION
    + remains.FUNCTIONS
    + "".join(_FOLDER.joinpath(f"{name}.sh").read_text() for name in _SCRIPTS)
)
SCRIPT = FUNCTIONS + _FOLDER.joinpath("node.sh").read_text()


class NodeFact(Framed[NodeState]):
    """The state of a host, read by one command.

    Needs root to see which process listens on which port; without it the rest is still read.
    """

    @override
    def command(self) -> str:
        return SCRIPT

    @override
    def process(self, output: list[str]) -> NodeState:
        return parse(output)
