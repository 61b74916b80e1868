"""What runs on nodes of the cluster. Read it on the leader."""

import json
import shlex
from base64 import b64decode
from collections.abc import Sequence

from deploys.engine.framed import Framed
from deploys.parts.cluster import api_scripts as api
from deploys.parts.cluster.kubectl import ADMIN_CONF
from gpuboot.cluster import drain
from gpuboot.cluster.pods import parse_pod
from gpuboot.hosts.fact_output import Fields


class NodePods(Framed[drain.NodePods]):
    """Pods, their disruption budgets and volumes of one node, by one command."""

    of_cluster = True

    def command(self, kubeconfig: str, node: str) -> str:
        """`kubeconfig`: path of the credentials on the leader; `node`: name in Kubernetes."""
        asking = api.command("cluster/answers.sh", kubeconfig, drain.paths(node))
        return f"printf 'node\\t%s\\n' {node}\n{asking}"

    def process(self, output: list[str]) -> drain.NodePods:
        return drain.parse(output, Fields(output).first("node"))


class PodsOfNodes(Framed[dict[str, drain.NodePods]]):
    """What runs on several nodes, with disruption budgets, by one command; by name of the node."""

    of_cluster = True

    def command(self, kubeconfig: str, nodes: Sequence[str]) -> str:
        """`kubeconfig`: path of the credentials on the leader; `nodes`: names in Kubernetes."""
        names = f"printf 'node\\t%s\\n' {' '.join(nodes)}"
        return (
            f"{names}\n{api.command('cluster/answers.sh', kubeconfig, drain.paths_of_pods(nodes))}"
        )

    def process(self, output: list[str]) -> dict[str, drain.NodePods]:
        return drain.parse_pods(output, Fields(output).all("node"))


class GpuPods(Framed[tuple[str, ...] | None]):
    """Pods of a node that hold GPUs, as namespace/name; None: no answer.

    Read it on the leader.
    """

    of_cluster = True

    @staticmethod
    def default() -> tuple[str, ...] | None:
        return None

    def command(self, node: str) -> str:
        return (
            f"if [ -r {ADMIN_CONF} ] && command -v kubectl >/dev/null; then "
            f"kubectl --kubeconfig {ADMIN_CONF} get pods -A --request-timeout=20s "
            f"--field-selector spec.nodeName={shlex.quote(node)} "
            "-o json 2>/dev/null | base64 -w 0; echo; fi"
        )

    def process(self, output: list[str]) -> tuple[str, ...] | None:
        text = b64decode("".join(output)).decode()
        if not text.strip():
            return None
        pods = map(parse_pod, json.loads(text)["items"])
        return tuple(pod.key for pod in pods if pod.devices and not pod.finished)
