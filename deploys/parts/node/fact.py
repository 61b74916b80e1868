"""The one compound fact about a host: everything preflight and the phases look at."""

from deploys.engine.framed import Framed, script
from deploys.parts.node import remains_functions as remains
from deploys.parts.packages import fact as packages
from deploys.parts.secure_boot import fact as secure_boot
from gpuboot.hosts.node_state import NodeState
from gpuboot.hosts.node_state import parse as parse_node_state

# each defines functions that fact.sh calls
_FUNCTIONS = (
    "boot", "dkms", "folders", "module_loading", "networks", "packet_filter", "proxies", "software",
    "vendor_stack",
)  # fmt: skip
_FUNCTIONS_OF_OTHERS = remains.FUNCTIONS + packages.KEYS + secure_boot.FUNCTION
SCRIPT = _FUNCTIONS_OF_OTHERS + "".join(script(f"node/{name}.sh") for name in (*_FUNCTIONS, "fact"))


class NodeFact(Framed[NodeState]):
    """The state of a host, read by one command.

    Needs root to see which process listens on which port; without it the rest is still read.
    """

    parse = parse_node_state

    def command(self) -> str:
        return SCRIPT
