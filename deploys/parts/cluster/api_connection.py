"""The cluster's API, through the SSH connection that pyinfra holds to the leader."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra.api.host import Host

from deploys.engine.remote import RemoteError, run
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.cluster.api import Cluster, ClusterError, connect


@contextmanager
def cluster_clients(leader: Host) -> Iterator[Cluster]:
    """The cluster's clients, with the administrator's rights.

    + leader: the host that holds admin.conf, connected

    Raises `ClusterError`.
    """
    try:
        # not by a fact: pyinfra prints what facts say at -vvv, and this holds a key
        kubeconfig = run(leader, f"cat {ADMIN_CONF}")
    except RemoteError as error:
        raise ClusterError(f"there is no cluster to ask: {error}") from None
    with connect(kubeconfig, _transport(leader)) as clients:
        yield clients


def _transport(leader: Host) -> Any:
    """paramiko's transport to the leader; None where its network is this machine's own."""
    client = getattr(leader.connector, "client", None)
    return client.get_transport() if client is not None else None
