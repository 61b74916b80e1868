"""Addresses that a host can open no TCP connection to."""

import shlex

from deploys.engine.framed import Framed

WAIT_S = 10


class UnreachableEndpoints(Framed[list[str]]):
    """The addresses, `host:port`, at which nothing answers, asked all at once.

    bash and timeout are there on every Debian and Ubuntu, curl is not.
    """

    default = list

    def command(self, addresses: list[str]) -> str:
        script = (
            "for a; do "
            f'{{ timeout {WAIT_S} bash -c "exec 3<>/dev/tcp/${{a%:*}}/${{a##*:}}" 2>/dev/null '
            '|| echo "$a"; } & done; wait'
        )
        return shlex.join(["bash", "-c", script, "_", *addresses])

    def process(self, output: list[str]) -> list[str]:
        return sorted(output)
