"""The one compound fact about a host: everything preflight and the phases look at."""

from __future__ import annotations

from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from deploys.parts.node import remains_functions as remains
from deploys.parts.packages import fact as packages
from deploys.parts.secure_boot import fact as secure_boot
from gpuboot.hosts.node_state import NodeState, parse

_FOLDER = resources.files("deploys.parts.node")
# each defines functions that fact.sh calls
_FUNCTIONS = (
    "boot", "dkms", "folders", "module_loading", "networks", "packet_filter", "proxies", "software",
    "vendor_stack",
)  # fmt: skip
_FUNCTIONS_OF_OTHERS = remains.FUNCTIONS + packages.KEYS + secure_boot.FUNCTION
SCRIPT = _FUNCTIONS_OF_OTHERS + "".join(
    _FOLDER.joinpath(f"{name}.sh").read_text() for name in (*_FUNCTIONS, "fact")
)


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
