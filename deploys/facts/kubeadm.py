"""How far kubeadm got on a host, and the cluster as its leader sees it."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.kubernetes.cluster_state import (
    ClusterState,
    KubeadmState,
    parse_cluster,
    parse_kubeadm,
)

_SCRIPTS = resources.files("deploys.facts")
HOST_SCRIPT = _SCRIPTS.joinpath("kubeadm.sh").read_text()
CLUSTER_SCRIPT = _SCRIPTS.joinpath("cluster.sh").read_text()


class Kubeadm(Framed[KubeadmState]):
    """Packages, files and half-done steps of kubeadm on one host, by one command."""

    @override
    def command(self, socket: str) -> str:
        """`socket`: path of containerd's socket."""
        return f"socket={shlex.quote(socket)}\n{HOST_SCRIPT}"

    @override
    def process(self, output: list[str]) -> KubeadmState:
        return parse_kubeadm(output)


class Cluster(Framed[ClusterState]):
    """API server, nodes, workloads and GPU Operator, by one command. Read it on the leader."""

    of_cluster = True

    preflight = "no"

    @override
    def command(self, kubeconfig: str) -> str:
        """`kubeconfig`: path of the credentials on the leader."""
        variables = f"KUBECONFIG={shlex.quote(kubeconfig)} preflight={self.preflight}"
        return f"{variables}\n{CLUSTER_SCRIPT}"

    @override
    def process(self, output: list[str]) -> ClusterState:
        return parse_cluster(output)


class ClusterInPreflight(Cluster):
    """As `Cluster`, with flannel's backend and the Services' node ports."""

    preflight = "yes"
