"""What a proof means for the gate of nodes, done on the leader by the gate's program."""

from collections.abc import Sequence
from importlib.metadata import version

from pyinfra import logger
from pyinfra.api.host import Host
from pyinfra.api.state import State

from deploys.engine.commands import report_failure
from deploys.engine.remote import RemoteError, run
from gpuboot.cluster import node_gate

# The program comes with its lines: a run that switches the gate on, or brings a newer one, upgrades
# nodes before it installs it. Lines come first, then an empty one. `read` takes no byte too many.
_RECORD = (
    'lines=$(while IFS= read -r line && [ -n "$line" ]; do printf \'%s\\n\' "$line"; done); '
    "program=$(cat); "
    'printf \'%s\\n\' "$lines" | sh -c "$program" gpuboot-gate record '
)


def record(leader: Host, outcomes: Sequence[Sequence[str]]) -> None:
    """Open and close nodes. + outcomes: of `gpuboot.verify.gate_outcome`

    Raises `RemoteError` when the cluster does not answer.
    """
    if not outcomes:
        return
    program_input = f"{node_gate.lines(outcomes)}\n{node_gate.program()}"
    for line in run(leader, f"{_RECORD}{version('gpuboot')}", program_input).splitlines():
        logger.info(f"gate: {line}")


def settle(leader: Host, outcomes: Sequence[Sequence[str]]) -> None:
    """Record outcomes, see `record`; a gate that cannot be moved is a warning, and no verdict."""
    try:
        record(leader, outcomes)
    except RemoteError as error:
        logger.warning(f"the gate of nodes stays as it is: {error}")


def close(
    state: State,
    host: Host,
    node: str,
    leader: str,
    reason: str,
    message: str,
    without_api: bool = False,
) -> bool:
    """Keep pods off a node until it is proven; a FunctionCommand's body. False: it failed.

    + without_api: go on where the API server does not answer: this host may be the one it runs on
    """
    try:
        record(state.inventory.get_host(leader), [("close", node, reason, message)])
    except RemoteError as error:
        if not without_api:
            return report_failure(host, str(error))
        logger.warning(f"{host.print_prefix}{node} is not closed: {error}")
    return True
