"""Rules that let pods' packets pass, and that Docker's packet filter lacks."""

import shlex
from ipaddress import ip_network

from deploys.engine.framed import Framed

CHAIN = "DOCKER-USER"


def program(pods: str) -> str:
    """iptables, by the kind of addresses that pods have."""
    return "ip6tables" if ip_network(pods).version == 6 else "iptables"


class MissingRules(Framed[list[str]]):
    """Options of the rules for pods that Docker's chain for users lacks.

    None where Docker is not there, or filters nothing.
    """

    default = list

    def command(self, pods: str) -> str:
        """`pods`: network of all pods."""
        tables, network = program(pods), shlex.quote(pods)
        return f"""\
{tables} -w 5 -S {CHAIN} >/dev/null 2>&1 || exit 0
for side in -s -d; do
  {tables} -w 5 -C {CHAIN} "$side" {network} -j ACCEPT 2>/dev/null || echo "rule $side"
done"""

    def process(self, output: list[str]) -> list[str]:
        return [line.removeprefix("rule ") for line in output if line.startswith("rule ")]
