"""Why the API server of a control-plane host may not answer, by what is on the host itself."""

import gzip
from base64 import b64decode

from deploys.engine.framed import Framed, script
from deploys.parts.cluster import api_scripts as api
from gpuboot.cluster.api_answers import error_message
from gpuboot.cluster.node_reports import LEASES
from gpuboot.hosts.fact_output import Fields


class ApiServerLacks(Framed[list[tuple[str, str]]]):
    """What keeps the API server from running here: part and reason, the lowest part first."""

    of_cluster = True
    default = list

    def command(self, socket: str) -> str:
        """`socket`: path of containerd's socket."""
        return script("cluster/api_server_fact.sh", socket=socket)

    def process(self, output: list[str]) -> list[tuple[str, str]]:
        return [(part, problem) for part, problem in Fields(output).rows("lacks")]


class RejectedReport(Framed[str]):
    """Why the API server takes no report of a node, in its own words; "" where it takes them.

    Read it on the leader. Nothing is changed: the report is a dry run without a change.
    """

    of_cluster = True
    default = str

    def command(self, kubeconfig: str, node: str) -> str:
        """`kubeconfig`: path of the credentials on the leader; `node`: its Kubernetes name."""
        return api.command("cluster/rejected_report.sh", kubeconfig, [f"{LEASES}/{node}"])

    def process(self, output: list[str]) -> str:
        values = Fields(output)
        if values.first("error") or values.first("status") in ("200", "404"):
            return ""
        answer = gzip.decompress(b64decode(values.first("answer"))).decode(errors="replace")
        return error_message(answer) or values.first("status")
