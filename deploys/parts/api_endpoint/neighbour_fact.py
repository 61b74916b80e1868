"""Whether an address is free before it becomes the virtual one."""

from __future__ import annotations

import shlex
from importlib import resources

from typing_extensions import override

from deploys.engine.framed import Framed
from gpuboot.cluster.kubeadm import API_PORT
from gpuboot.cluster.virtual_address import Neighbour, parse_neighbour

_SCRIPT = resources.files("deploys.parts.api_endpoint").joinpath("neighbour_fact.sh").read_text()


class AddressOwner(Framed[Neighbour]):
    """Who answers at an address in a network of this host; asked where none of ours has it."""

    default = Neighbour

    @override
    def command(self, address: str) -> str:
        return f"address={shlex.quote(address)} port={API_PORT}\n{_SCRIPT}"

    @override
    def process(self, output: list[str]) -> Neighbour:
        return parse_neighbour(output)
