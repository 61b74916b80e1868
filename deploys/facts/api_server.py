"""Why the API server of a control-plane host may not answer, by what is on the host itself."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.facts.framed import Framed
from gpuboot.hosts.fact_output import Fields

SCRIPT = resources.files("deploys.facts").joinpath("api_server.sh").read_text()


class ApiServerLacks(Framed[list[tuple[str, str]]]):
    """What keeps the API server from running here: part and reason, the lowest part first."""

    of_cluster = True
    default = list

    @override
    def command(self, socket: str) -> str:
        """`socket`: path of containerd's socket."""
        return f"socket={shlex.quote(socket)}\n{SCRIPT}"

    @override
    def process(self, output: list[str]) -> list[tuple[str, str]]:
        return [(part, problem) for part, problem in Fields(output).rows("lacks")]
