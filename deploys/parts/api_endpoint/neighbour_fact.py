"""Whether an address is free before it becomes the virtual one."""

from deploys.engine.framed import Framed, script
from gpuboot.cluster.kubeadm import API_PORT
from gpuboot.cluster.virtual_address import Neighbour, parse_neighbour


class AddressOwner(Framed[Neighbour]):
    """Who answers at an address in a network of this host; asked where none of ours has it."""

    default = Neighbour
    parse = parse_neighbour

    def command(self, address: str) -> str:
        return script("api_endpoint/neighbour_fact.sh", address=address, port=str(API_PORT))
