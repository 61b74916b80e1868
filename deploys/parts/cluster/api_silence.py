"""An API server that does not answer: what its host says of it, for who waits."""

from collections.abc import Callable
from dataclasses import replace

from pyinfra.api.host import Host

from deploys.engine import remote
from deploys.parts.cluster.api_server_fact import ApiServerLacks
from deploys.parts.cluster.fact import Cluster
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.cluster.cluster_state import ClusterState
from gpuboot.cluster.kubeadm import SOCKET
from gpuboot.cluster.readiness import Progress
from gpuboot.cluster.stuck_api_server import of_control_plane


def explained(look: Progress, lacks: list[tuple[str, str]], leader: Host) -> Progress:
    """A look at an API server that does not answer, with the reasons.

    + lacks: as the fact `ApiServerLacks` of its host tells
    """
    stuck = of_control_plane(lacks, leader.name)
    return replace(look, text="; ".join([look.text, *map(str, stuck)]), stuck=stuck)


def lacks(target: Host) -> list[tuple[str, str]]:
    """What keeps the API server of a control-plane host from running: part and reason."""
    return remote.read_fact(target, ApiServerLacks, socket=SOCKET)


def looked(leader: Host, look: Callable[[ClusterState], Progress]) -> Progress:
    """A look at the cluster, from another host; where nothing answers, with the reasons."""
    state = remote.read_fact(leader, Cluster, kubeconfig=ADMIN_CONF)
    progress = look(state)
    return explained(progress, lacks(leader), leader) if state.error else progress
