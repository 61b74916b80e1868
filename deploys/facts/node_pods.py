"""What runs on one node of the cluster. Read it on the leader."""

from __future__ import annotations

from typing_extensions import override

from deploys.facts import api
from deploys.facts.framed import Framed
from gpuboot.fact_output import Fields
from gpuboot.kubernetes import drain


class NodePods(Framed[drain.NodePods]):
    """Pods, their disruption budgets and volumes of one node, by one command."""

    of_cluster = True

    @override
    def command(self, kubeconfig: str, node: str) -> str:
        """`kubeconfig`: path of the credentials on the leader; `node`: name in Kubernetes."""
        asking = api.command("cluster.sh", kubeconfig, drain.paths(node))
        return f"printf 'node\\t%s\\n' {node}\n{asking}"

    @override
    def process(self, output: list[str]) -> drain.NodePods:
        return drain.parse(output, Fields(output).first("node"))
