"""What is in force in the cluster, as the API server and what is behind its proxy tell."""

import shlex
from collections.abc import Sequence

from deploys.engine.framed import Framed
from deploys.parts.cluster import api_scripts as api
from gpuboot.cluster import settings_in_force
from gpuboot.cluster.open_rights import PATHS


class InForce(Framed[settings_in_force.InForce]):
    """Kubelets' configuration, rights of everybody, and silences, by one command. On the leader."""

    of_cluster = True
    parse = settings_in_force.parse

    @staticmethod
    def default() -> settings_in_force.InForce:
        return settings_in_force.InForce(error="there is no answer")

    def command(self, kubeconfig: str, nodes: Sequence[str], silences: str) -> str:
        """`kubeconfig`: the credentials; `nodes`: names; `silences`: Alertmanager's path or ""."""
        head = f"nodes={shlex.quote(' '.join(nodes))} silences={shlex.quote(silences)}"
        return f"{head}\n{api.command('in_force/fact.sh', kubeconfig, PATHS)}"
